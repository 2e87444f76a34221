//! `simurgh --print-config`: every value and where it came from, passwords hidden.
//!
//! ```text
//! port                 7000          redis.conf:12
//! bind                 "* -::*"      default
//! requirepass          (hidden)      environment SIMURGH_REQUIREPASS
//! ```

use std::io::{self, Write};

use simurgh_protocol::config::{Key, Settings};
use simurgh_protocol::quoted::quote;

/// Writes one line for each key.
pub fn print_config(settings: &Settings, out: &mut impl Write) -> io::Result<()> {
    for &key in Key::ALL {
        let (name, value, origin) = (key.row().name, shown_value(settings, key), settings.origin(key));
        writeln!(out, "{name:<38} {value:<30} {origin}")?;
    }
    Ok(())
}

fn shown_value(settings: &Settings, key: Key) -> String {
    let value = settings.text(key);
    let plain = !value.is_empty() && value.iter().all(|byte| byte.is_ascii_graphic());
    match (key.row().secret && !value.is_empty(), plain) {
        (true, _) => "(hidden)".to_owned(),
        (false, true) => String::from_utf8_lossy(&value).into_owned(),
        (false, false) => String::from_utf8_lossy(&quote(&value)).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::config::{Given, Origin};

    #[test]
    fn values_come_with_their_origin_and_passwords_hidden() {
        let mut settings = Settings::default();
        let file = Origin::File { file: "redis.conf".into(), line: 12 };
        settings.put(Key::Port, Given::Whole(b"7000"), file).unwrap();
        settings.put(Key::RequirePass, Given::Whole(b"secret"), Origin::CommandLine).unwrap();
        let mut out = Vec::new();
        print_config(&settings, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = |name: &str| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("port"), "port 7000 redis.conf:12");
        assert_eq!(line("bind"), "bind \"* -::*\" default");
        assert_eq!(line("requirepass"), "requirepass (hidden) command line");
        assert_eq!(line("masterauth"), "masterauth \"\" default");
        assert_eq!(text.lines().count(), Key::ALL.len());
        assert!(!text.contains("secret"));
    }
}
