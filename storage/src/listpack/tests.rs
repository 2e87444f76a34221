//! Packed lists against what Redis wrote, against vectors, and against bytes that are no packed lists.

use super::{BYTES_MAX, COUNT_UNKNOWN, Item, Listpack};
use crate::block::Malformed;
use crate::database::size_class;
use proptest::prelude::*;

/// The list of [`INTEGERS`] as Redis 8.2.3 dumped it (`RPUSH`, then `DUMP` without the frame).
const DUMPED_LIST: &[u8] = b"\xa1\x00\x00\x00\x1c\x00\x00\x01\x01\x01\x7f\x01\xc0\x80\x02\xdf\xff\x02\xcf\xff\x02\xf1\x00\x10\x03\
    \xd0\x00\x02\xf1\xff\xef\x03\xf1\xff\x7f\x03\xf2\x00\x80\x00\x04\xf1\x00\x80\x03\xf2\xff\x7f\xff\x04\xf2\xff\xff\x7f\x04\
    \xf3\x00\x00\x80\x00\x05\xf2\x00\x00\x80\x04\xf3\xff\xff\x7f\xff\x05\xf3\xff\xff\xff\x7f\x05\
    \xf4\x00\x00\x00\x80\x00\x00\x00\x00\t\xf3\x00\x00\x00\x80\x05\xf4\xff\xff\xff\x7f\xff\xff\xff\xff\t\
    \xf4\xff\xff\xff\xff\xff\xff\xff\x7f\t\xf4\x00\x00\x00\x00\x00\x00\x00\x80\t\
    \x939223372036854775808\x14\x83007\x04\x82-0\x03\x82+1\x03\x80\x01\xff";

/// Every width's edges, and what only looks like an integer.
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "127",
    "128",
    "-1",
    "4095",
    "4096",
    "-4096",
    "-4097",
    "32767",
    "32768",
    "-32768",
    "-32769",
    "8388607",
    "8388608",
    "-8388608",
    "-8388609",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "007",
    "-0",
    "+1",
    "",
];

/// `HSET h f v n 12 s xxx...`, with 64 of them.
const DUMPED_HASH: &[u8] = b"\x58\x00\x00\x00\x06\x00\x81f\x02\x81v\x02\x81n\x02\x0c\x01\x81s\x02\
    \xe0@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxB\xff";
/// `ZADD z 1.5 a -3 b 1000 7`.
const DUMPED_SORTED_SET: &[u8] =
    b"\x1a\x00\x00\x00\x06\x00\x81b\x02\xdf\xfd\x02\x81a\x02\x831.5\x04\x07\x01\xc3\xe8\x02\xff";
/// `SADD s a 1 bb`.
const DUMPED_SET: &[u8] = b"\x10\x00\x00\x00\x03\x00\x81a\x02\x01\x01\x82bb\x03\xff";

fn list(texts: &[impl AsRef<[u8]>]) -> Listpack {
    let mut list = Listpack::new();
    for text in texts {
        list.push_back(text.as_ref());
    }
    list
}

fn texts(list: &Listpack) -> Vec<Vec<u8>> {
    list.iter().map(|item| item.to_vec()).collect()
}

#[test]
fn bytes_are_redis_s() {
    let xs = "x".repeat(64);
    let cases: [(&[&str], &[u8]); 4] = [
        (INTEGERS, DUMPED_LIST),
        (&["f", "v", "n", "12", "s", &xs], DUMPED_HASH),
        (&["b", "-3", "a", "1.5", "7", "1000"], DUMPED_SORTED_SET),
        (&["a", "1", "bb"], DUMPED_SET),
    ];
    for (elements, dumped) in cases {
        assert_eq!(list(elements).as_bytes(), dumped);
        let mut front = Listpack::new();
        elements.iter().rev().for_each(|text| front.push_front(text.as_bytes()));
        assert_eq!(front.as_bytes(), dumped);
        let read = Listpack::from_bytes(dumped).unwrap();
        assert_eq!(texts(&read), elements.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>());
    }
}

/// What Redis 8.2.3 put before and behind the x's of `HSET b f xxx...`; at 16378 and 2097146 its backlen is a byte longer than
/// it need be.
#[test]
fn lengths_are_redis_s() {
    let cases: [(usize, &[u8], &[u8]); 15] = [
        (63, b"\xbf", b"\x40"),
        (64, b"\xe0\x40", b"\x42"),
        (123, b"\xe0\x7b", b"\x7d"),
        (124, b"\xe0\x7c", b"\x7e"),
        (125, b"\xe0\x7d", b"\x7f"),
        (126, b"\xe0\x7e", b"\x01\x80"),
        (127, b"\xe0\x7f", b"\x01\x81"),
        (4095, b"\xef\xff", b"\x20\x81"),
        (4096, b"\xf0\x00\x10\x00\x00", b"\x20\x85"),
        (16377, b"\xf0\xf9\x3f\x00\x00", b"\x7f\xfe"),
        (16378, b"\xf0\xfa\x3f\x00\x00", b"\x00\xff\xff"),
        (16379, b"\xf0\xfb\x3f\x00\x00", b"\x01\x80\x80"),
        (2097145, b"\xf0\xf9\xff\x1f\x00", b"\x7f\xff\xfe"),
        (2097146, b"\xf0\xfa\xff\x1f\x00", b"\x00\xff\xff\xff"),
        (2097147, b"\xf0\xfb\xff\x1f\x00", b"\x01\x80\x80\x80"),
    ];
    for (length, head, backlen) in cases {
        let text = vec![b'x'; length];
        let list = list(&[&b"f"[..], &text]);
        let expected = [b"\x81f\x02", head, &text, backlen, b"\xff"].concat();
        assert_eq!(&list.as_bytes()[6..], &expected[..], "{length}");
        assert_eq!(Item::from(&text).packed_length(), expected.len() - 4);
        let read = Listpack::from_bytes(list.as_bytes()).unwrap();
        assert_eq!((read.last(), read.prev(read.last().unwrap())), (Some(9), Some(6)));
    }
}

/// Redis 8.10.2 and Valkey 9.1.2 write the shorter backlen, which is read as well; Redis 8.2.3 dies of it.
#[test]
fn lengths_that_servers_differ_in_are_read_either_way() {
    for (length, head, theirs) in
        [(16378, b"\xf0\xfa\x3f\x00\x00", &b"\x7f\xff"[..]), (2097146, b"\xf0\xfa\xff\x1f\x00", b"\x7f\xff\xff")]
    {
        let text = vec![b'x'; length];
        let body = [b"\x03\x00\x81f\x02", &head[..], &text, theirs, b"\x07\x01\xff"].concat();
        let foreign = [&(body.len() as u32 + 4).to_le_bytes()[..], &body].concat();
        let ours = list(&[&b"f"[..], &text, b"7"]);
        assert_eq!(foreign.len() + 1, ours.as_bytes().len());
        assert_eq!(Listpack::from_bytes(&foreign).unwrap().as_bytes(), ours.as_bytes());
        assert!(!ours.is_portable());
        let near = [&text[1..], &[&text[..], b"x"].concat()].map(|text| list(&[text]).is_portable());
        assert_eq!(near, [true, true]);
    }
    assert!(list(INTEGERS).is_portable());
}

#[test]
fn damage_is_refused() {
    let good = list(&["a", "1000", "b"]);
    let good = good.as_bytes();
    assert_eq!(Listpack::from_bytes(good).map(|list| list.len()), Ok(3));
    for length in 0..good.len() {
        let mut short = good[..length].to_vec();
        assert_eq!(Listpack::from_bytes(&short).err(), Some(Malformed));
        if let Some(total) = short.first_mut() {
            *total = length as u8;
        }
        assert_eq!(Listpack::from_bytes(&short).err(), Some(Malformed));
    }
    let front = |bytes: &[u8]| [&(bytes.len() as u32 + 4).to_le_bytes()[..], bytes].concat();
    let cases: [(&str, &[u8]); 10] = [
        ("a total that is none", b"\x00\x00\x00\x00\x00\x00\xff"),
        ("too few counted", &front(b"\x00\x00\x01\x01\xff")),
        ("too many counted", &front(b"\x02\x00\x01\x01\xff")),
        ("an end within", &front(b"\x01\x00\xff\x01\xff")),
        ("no end", &front(b"\x01\x00\x01\x01\x01")),
        ("a head that is none", &front(b"\x01\x00\xf5\x01\xff")),
        ("a backlen that lies", &front(b"\x01\x00\x01\x02\xff")),
        ("a backlen longer than it need be", &front(b"\x01\x00\x01\x00\x81\xff")),
        ("a text beyond the end", &front(b"\x01\x00\xf0\xff\xff\xff\xff\x01\xff")),
        ("a text over the end", &front(b"\x01\x00\x82a\x03\xff")),
    ];
    for (name, bytes) in cases {
        assert_eq!(Listpack::from_bytes(bytes).err(), Some(Malformed), "{name}");
    }
    let unknown = Listpack::from_bytes(&front(b"\xff\xff\x01\x01\x02\x01\xff")).unwrap();
    assert_eq!(
        (unknown.len(), &unknown.as_bytes()[4..6]),
        (2, &b"\x02\x00"[..]),
        "a count that is unknown is found out"
    );
}

/// Redis writes so itself: `HLEN` counts what `HDEL` left at "unknown".
#[test]
fn a_count_that_does_not_fit_is_unknown() {
    let mut list = Listpack::new();
    let items: Vec<_> = (0..70_000).map(Item::Int).collect();
    list.splice(list.end(), 0, &items[..65_534]);
    assert_eq!((list.len(), &list.as_bytes()[4..6]), (65_534, &b"\xfe\xff"[..]));
    list.push_back(65_534);
    assert_eq!((list.len(), &list.as_bytes()[4..6]), (65_535, &b"\xff\xff"[..]));
    list.splice(list.end(), 0, &items[65_535..]);
    assert_eq!(list.len(), 70_000);
    for (index, number) in [(65_535, 65_535), (-1, 69_999), (-70_000, 0), (0, 0), (69_999, 69_999)] {
        assert_eq!(list.seek(index).map(|at| list.get(at)), Some(Item::Int(number)), "{index}");
    }
    assert_eq!((list.seek(70_000), list.seek(-70_001)), (None, None));
    assert_eq!(list.find(b"66666", 2).map(|at| list.get(at)), Some(Item::Int(66_666)));
    assert_eq!(list.find(b"66667", 2), None);
    let again = Listpack::from_bytes(list.as_bytes()).unwrap();
    assert_eq!((again.len(), again.count()), (70_000, None));
    list.remove_range(10, 69_980);
    assert_eq!((list.len(), list.count()), (20, None));
    list.append(&list.clone());
    let tail = list.split_off(list.seek(30).unwrap());
    assert_eq!((list.len(), list.count(), tail.len(), tail.count()), (30, None, 10, Some(10)));
    list.truncate(15);
    assert_eq!((list.len(), list.count()), (15, Some(15)));
}

#[test]
fn a_text_is_found_whichever_way_it_is_kept() {
    let packed = list(&["k", "5", "5", "k", "-0", "5", "77", ""]);
    let position = |text: &str, stride| {
        packed.find(text.as_bytes(), stride).map(|at| texts(&packed)[..].len() - packed.iter_from(at).count())
    };
    assert_eq!(
        [position("k", 1), position("k", 2), position("5", 1), position("5", 2)],
        [Some(0), Some(0), Some(1), Some(2)]
    );
    assert_eq!([position("5", 3), position("-0", 2), position("", 2), position("", 1)], [None, Some(4), None, Some(7)]);
    assert_eq!([position("05", 1), position("7", 1), position("777", 1), position("-5", 1)], [None; 4]);
    // The text "5" kept as bytes, as no Redis writes but every one reads.
    let strange = Listpack::of(&[Item::Bytes(b"5"), Item::Bytes(b"x")]);
    assert_eq!((strange.find(b"5", 1), strange.find(b"6", 1)), (Some(6), None));
    assert!(strange.get(6).equals(b"5") && strange.get(6).same(&Item::Int(5)) && Item::Int(5).same(&strange.get(6)));
    assert_eq!((strange.get(6).to_i64(), strange.get(9).to_i64(), Item::Int(5).to_i64()), (Some(5), None, Some(5)));
    assert!(Item::Int(5).equals(b"5") && !Item::Int(5).equals(b"05") && !Item::Int(5).equals(b"6"));
}

#[test]
fn positions_lead_on() {
    let mut packed = list(&["b", "d"]);
    let b = packed.first().unwrap();
    let c = packed.insert_after(b, b"c");
    packed.insert_before(b, b"a");
    assert_eq!(packed.get(c + 3), Item::Bytes(b"c"));
    packed.replace(b, b"longer than it was");
    let at = packed.remove(b).unwrap();
    assert_eq!((at, packed.get(at)), (b, Item::Bytes(b"b")));
    let d = packed.last().unwrap();
    assert_eq!((packed.get(d), packed.next(d)), (Item::Bytes(b"d"), None));
    assert_eq!(packed.remove(d), None);
    assert_eq!(packed.remove_run(b, 9), None);
    assert_eq!(
        (packed.is_empty(), packed.first(), packed.last(), packed.as_bytes()),
        (true, None, None, &super::EMPTY[..])
    );
    assert!(packed.fits(BYTES_MAX - 7) && !packed.fits(BYTES_MAX) && !packed.fits(usize::MAX));
}

#[test]
fn a_list_is_a_thin_pointer_and_counts_its_memory() {
    assert_eq!(size_of::<Option<Listpack>>(), 8);
    assert_eq!((Listpack::new().bytes(), list(&["0123456789"; 9]).bytes()), (8, 128));
}

/// One change, with numbers to be brought into range.
#[derive(Clone, Debug)]
enum Step {
    Splice(usize, usize, Vec<Vec<u8>>),
    Push(Vec<u8>, bool),
    InsertAfter(usize, Vec<u8>),
    Remove(usize),
    RemoveRange(isize, usize),
    Truncate(usize),
    SplitAndAppend(usize),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        4 => (any::<i64>(), 0_u32..64).prop_map(|(number, bits)| (number >> bits).to_string().into_bytes()),
        6 => prop::collection::vec(any::<u8>(), 0..20),
        2 => prop::collection::vec(b'0'..b':', 0..21),
        1 => (50_usize..5000).prop_map(|length| vec![b'y'; length]),
        1 => (16_370_usize..16_390).prop_map(|length| vec![b'z'; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0_usize..200;
    prop_oneof![
        3 => (index.clone(), 0_usize..5, prop::collection::vec(text(), 0..6)).prop_map(|(at, removed, items)| Step::Splice(at, removed, items)),
        6 => (text(), any::<bool>()).prop_map(|(text, back)| Step::Push(text, back)),
        2 => (index.clone(), text()).prop_map(|(at, text)| Step::InsertAfter(at, text)),
        2 => index.clone().prop_map(Step::Remove),
        1 => (-200_isize..200, 0_usize..9).prop_map(|(index, count)| Step::RemoveRange(index, count)),
        1 => index.clone().prop_map(Step::Truncate),
        1 => index.prop_map(Step::SplitAndAppend),
    ]
}

fn at(list: &Listpack, index: usize) -> usize {
    list.seek(index as isize).unwrap_or(list.end())
}

fn apply(step: Step, list: &mut Listpack, model: &mut Vec<Vec<u8>>) {
    let within = |index: usize| index % (model.len() + 1);
    match step {
        Step::Splice(index, removed, items) => {
            let index = within(index);
            let packed: Vec<_> = items.iter().map(Item::from).collect();
            let behind = list.splice(at(list, index), removed, &packed);
            assert_eq!(behind, at(list, index + items.len()));
            model.splice(index..model.len().min(index + removed), items);
        }
        Step::Push(text, true) => {
            list.push_back(&text);
            model.push(text);
        }
        Step::Push(text, false) => {
            list.push_front(&text);
            model.insert(0, text);
        }
        Step::InsertAfter(index, text) => {
            if let Some(at) = list.seek(within(index) as isize) {
                let new = list.insert_after(at, &text);
                assert!(list.get(new).equals(&text));
                model.insert(within(index) + 1, text);
            }
        }
        Step::Remove(index) => {
            if let Some(at) = list.seek(within(index) as isize) {
                let index = within(index);
                model.remove(index);
                assert_eq!(list.remove(at).map(|at| list.get(at).to_vec()), model.get(index).cloned());
            }
        }
        Step::RemoveRange(index, count) => {
            list.remove_range(index, count);
            let start = if index < 0 { model.len().checked_add_signed(index) } else { Some(index as usize) };
            if let Some(start) = start.filter(|start| *start < model.len()) {
                model.drain(start..model.len().min(start + count));
            }
        }
        Step::Truncate(count) => {
            list.truncate(count);
            model.truncate(count);
        }
        Step::SplitAndAppend(index) => {
            let tail = list.split_off(at(list, within(index)));
            assert_eq!((list.len(), tail.len()), (within(index), model.len() - within(index)));
            list.append(&tail);
        }
    }
}

fn check(list: &Listpack, model: &[Vec<u8>]) {
    assert_eq!(texts(list), model);
    assert!(list.iter().rev().map(|item| item.to_vec()).eq(model.iter().rev().cloned()));
    assert_eq!(
        (list.len(), list.is_empty(), list.bytes()),
        (model.len(), model.is_empty(), size_class(list.as_bytes().len()))
    );
    assert_eq!(Listpack::from_bytes(list.as_bytes()).unwrap().as_bytes(), list.as_bytes());
    let packed: usize = list.iter().map(|item| item.packed_length()).sum();
    assert_eq!(packed + 7, list.as_bytes().len());
    for (index, text) in model.iter().enumerate() {
        let at = list.seek(index as isize).unwrap();
        assert_eq!(list.seek(index as isize - model.len() as isize), Some(at));
        assert_eq!((list.get(at).text_length(), list.get(at).equals(text)), (text.len(), true));
        for stride in 1..4 {
            let first = model.iter().step_by(stride).position(|other| other == text).map(|number| number * stride);
            assert_eq!(list.find(text, stride), first.and_then(|first| list.seek(first as isize)));
        }
    }
    assert_eq!((list.seek(model.len() as isize), list.seek(-(model.len() as isize) - 1)), (None, None));
}

proptest! {
    #[test]
    fn a_list_does_what_a_vector_does(steps in prop::collection::vec(step(), 0..40)) {
        let (mut list, mut model) = (Listpack::new(), Vec::new());
        for step in steps {
            apply(step, &mut list, &mut model);
            check(&list, &model);
        }
        check(&list.clone(), &model);
    }

    /// What is taken in, damaged in a place or two, is a list that can be walked and rewritten.
    #[test]
    fn damaged_bytes_are_refused_or_harmless(
        words in prop::collection::vec(text(), 0..8), damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = list(&words).as_bytes().to_vec();
        for (place, byte) in damage {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if let Ok(mut read) = Listpack::from_bytes(&bytes) {
            let forward = texts(&read);
            let mut backward: Vec<_> = read.iter().rev().map(|item| item.to_vec()).collect();
            backward.reverse();
            prop_assert_eq!(&forward, &backward);
            prop_assert_eq!(forward.len(), read.len());
            read.push_front(b"a");
            prop_assert_eq!(read.len(), forward.len() + 1);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_harmless(body in prop::collection::vec(any::<u8>(), 0..60)) {
        let total = (body.len() + 7) as u32;
        let bytes = [&total.to_le_bytes()[..], &COUNT_UNKNOWN.to_le_bytes(), &body, b"\xff"].concat();
        if let Ok(read) = Listpack::from_bytes(&bytes) {
            prop_assert_eq!(read.iter().rev().count(), read.len());
        }
    }
}
