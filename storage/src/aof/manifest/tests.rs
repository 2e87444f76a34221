//! Manifests: what Redis takes and refuses, and what damage to one is found.

use super::*;
use proptest::prelude::*;

const BASE: &str = "file a.1.base.rdb seq 1 type b\n";
const INCR: &str = "file a.1.incr.aof seq 1 type i\n";

fn fault(text: &str) -> LineFault {
    match Manifest::parse(text.as_bytes()) {
        Err(ManifestError::Line { fault, .. }) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

/// Each of these was given to Redis 8.2.3, 7.0.15 and Valkey 9.1.2, which load them too.
#[test]
fn accepted_as_redis_does() {
    for text in [
        format!("# hi\n{BASE}{INCR}"),
        format!("{BASE}{INCR}").replace('\n', "\r\n"),
        format!("type b seq 1 file a.1.base.rdb\n{INCR}"),
        format!("FILE a.1.base.rdb SEQ 1 TYPE b\n{INCR}"),
        format!("file \"a.1.base.rdb\" seq 1 type b\n{INCR}"),
        format!("  file\ta.1.base.rdb  seq 1 type b foo bar \n{INCR}"),
        format!("{INCR}{BASE}"),
        format!("{BASE}{}{INCR}", format_args!("#{}\n", "x".repeat(1022))),
    ] {
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(manifest.lines(), format!("{BASE}{INCR}").as_bytes(), "{text}");
    }
    assert_eq!(Manifest::parse(b"# only\n").unwrap(), Manifest::default());
    let whole = format!("{}{INCR}", BASE.replace('\n', " simurgh-whole 9:ae8b14860a799888\n"));
    let manifest = Manifest::parse(whole.as_bytes()).unwrap();
    assert_eq!(manifest.base().unwrap().whole, Some(Whole::of(b"123456789")));
    assert_eq!(manifest.lines(), whole.as_bytes());
    let gap = format!("{INCR}file b seq 9 type i startoffset 5 endoffset 7\nfile h seq 2 type h\n");
    assert_eq!(Manifest::parse(gap.as_bytes()).unwrap().increments()[1].end_offset, Some(7));
}

#[test]
fn refused_as_redis_does() {
    assert_eq!(Manifest::parse(b""), Err(ManifestError::Empty));
    let unended = format!("{BASE}{}", INCR.trim_end());
    assert_eq!(Manifest::parse(unended.as_bytes()), Err(ManifestError::LongLine { line: 2 }));
    let long = format!("#{}\n", "x".repeat(1023));
    assert_eq!(Manifest::parse(long.as_bytes()), Err(ManifestError::LongLine { line: 1 }));
    for text in ["\n", "file a seq 1\n", "file a type b\n", "file a seq 1 zzz b\n", "file \"a seq 1 type b\n"] {
        assert_eq!(fault(text), LineFault::Format, "{text}");
    }
    assert_eq!(fault("file a seq 0 type b\n"), LineFault::Format);
    assert_eq!(fault("file a seq 1 type x\n"), LineFault::Kind);
    assert_eq!(fault("file a/b seq 1 type b\n"), LineFault::Path);
    assert_eq!(fault("file \"a\\\\b\" seq 1 type b\n"), LineFault::Path);
    assert_eq!(fault(&format!("{BASE}{BASE}")), LineFault::DuplicateBase);
    assert_eq!(fault(&format!("{INCR}{INCR}")), LineFault::Sequence);
    let error = Manifest::parse(format!("{BASE}{BASE}").as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Reading the manifest file, at line 2: Found duplicate base file information: 'file a.1.base.rdb seq 1 type b'"
    );
}

#[test]
fn stricter_than_redis() {
    for text in [
        "file a seq 1x type b\n",
        "file a seq 1 type b simurgh-whole 1\n",
        "file a seq -3 type b\n",
        "file a file b seq 1 type b\n",
    ] {
        assert_eq!(fault(text), LineFault::Format, "{text}");
    }
    assert_eq!(fault("file a seq 1 type bb\n"), LineFault::Kind);
    for text in ["file \"\" seq 1 type b\n", "file .. seq 1 type b\n"] {
        assert_eq!(fault(text), LineFault::Path, "{text}");
    }
}

#[test]
fn a_rewrite_step_by_step() {
    let mut manifest = Manifest::default();
    manifest.replace_base(manifest.next_base("a", BaseFormat::Rdb), 0).unwrap();
    manifest.push_increment(manifest.next_increment("a", Some(0))).unwrap();
    assert_eq!(manifest.lines(), format!("{BASE}{}", INCR.replace("\n", " startoffset 0\n")).as_bytes());
    let next = manifest.next_increment("a", None);
    manifest.push_increment(next.clone()).unwrap();
    manifest.replace_base(manifest.next_base("a", BaseFormat::Aof), next.sequence).unwrap();
    assert_eq!(manifest.base().unwrap().name, "a.2.base.aof");
    assert_eq!(manifest.increments(), [next]);
    let gone: Vec<_> = manifest.take_history().into_iter().map(|file| file.name).collect();
    assert_eq!(gone, ["a.1.base.rdb", "a.1.incr.aof"]);
    assert!(manifest.history().is_empty());
    assert_eq!((manifest_name("a"), temporary_name("b")), ("a.manifest".into(), "temp-b".into()));
}

/// What a flipped bit makes of a manifest is refused, or it means the same (the case of a key, a key of ours that is no longer one).
#[test]
fn d2_a_flipped_bit_changes_no_meaning() {
    let mut manifest = Manifest::default();
    let base = manifest.next_base("a", BaseFormat::Rdb);
    manifest.replace_base(ManifestFile { whole: Some(Whole::of(b"123456789")), ..base }, 0).unwrap();
    manifest.push_increment(manifest.next_increment("a", None)).unwrap();
    manifest.push_increment(manifest.next_increment("a", Some(7))).unwrap();
    let text = manifest.format();
    for bit in 0..text.len() * 8 {
        let mut damaged = text.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = Manifest::parse(&damaged) {
            assert_eq!(read, manifest, "bit {bit}: {}", String::from_utf8_lossy(&damaged));
        }
    }
    // Without the sum of all lines the last increment would be history, and deleted.
    let history = String::from_utf8(manifest.lines()).unwrap().replace("seq 2 type i", "seq 2 type h");
    assert_eq!(Manifest::parse(history.as_bytes()).unwrap().history().len(), 1);
}

/// A line that is lost is found, whichever it is: also one at the end.
#[test]
fn d2_a_lost_line_is_found() {
    let mut manifest = Manifest::default();
    manifest.push_increment(manifest.next_increment("a", None)).unwrap();
    manifest.push_increment(manifest.next_increment("a", None)).unwrap();
    let text = manifest.format();
    let first = text.iter().position(|&byte| byte == b'\n').unwrap();
    assert!(matches!(Manifest::parse(&text[..=first]), Err(ManifestError::Sum { .. })));
    assert_eq!(Manifest::parse(&text), Ok(manifest));
}

proptest! {
    #[test]
    fn round_trip(names in prop::collection::vec("[^/\\\\\\x00]{1,40}", 1..4)) {
        let mut manifest = Manifest::default();
        for name in names.into_iter().filter(|name| name != "." && name != "..") {
            let file = manifest.next_increment("a", None);
            manifest.push_increment(ManifestFile { name, ..file }).unwrap();
        }
        prop_assume!(!manifest.increments().is_empty());
        prop_assert_eq!(Manifest::parse(&manifest.format()).unwrap(), manifest);
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(manifest) = Manifest::parse(&bytes) {
            prop_assert!(manifest.format().is_empty() || Manifest::parse(&manifest.format()) == Ok(manifest.clone()));
        }
    }
}
