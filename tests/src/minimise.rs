//! Makes a failing list short: drops parts for as long as it still fails (delta debugging, Zeller 1999).

/// The shortest list found for which `fails` still holds; at most `tries` are made.
pub fn minimise<T: Clone>(list: &[T], tries: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut list = list.to_vec();
    let mut part = list.len().div_ceil(2);
    let mut left = tries;
    while part > 0 && left > 0 {
        let mut at = 0;
        let mut dropped = false;
        while at < list.len() && left > 0 {
            let mut shorter = list.clone();
            shorter.drain(at..(at + part).min(list.len()));
            left -= 1;
            if fails(&shorter) {
                list = shorter;
                dropped = true;
            } else {
                at += part;
            }
        }
        // Single elements are tried again while that helps: one may need another to go first.
        part = if part == 1 && dropped { 1 } else { part / 2 };
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let list: Vec<u32> = (0..1000).collect();
        let short = minimise(&list, 10_000, |list| list.contains(&17) && list.contains(&900));
        assert_eq!(short, [17, 900]);
    }
}
