//! Lists against a vector, and against what Redis 8.2.3 answers.

use super::*;
use crate::fixture::Fixture;
use proptest::prelude::*;
use std::collections::VecDeque;

/// One change of a list.
#[derive(Clone, Debug)]
enum Step {
    Push(End, Vec<Vec<u8>>),
    Pop(End),
    Set(i64, Vec<u8>),
    Insert(Side, Vec<u8>, Vec<u8>),
    RemoveRun(usize, usize),
    RemoveEqual(End, Vec<u8>, usize),
    Move(End, End),
}

/// Few different texts, so that they are found; some long, some too large for a node.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0_u8..8).prop_map(|number| number.to_string().into_bytes()),
        4 => (b'a'..b'h').prop_map(|letter| vec![letter]),
        3 => (b'a'..b'e', 500_usize..2500).prop_map(|(letter, length)| vec![letter; length]),
        1 => (b'a'..b'e', 4000_usize..9000).prop_map(|(letter, length)| vec![letter; length]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Front), Just(End::Back)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (end(), prop::collection::vec(text(), 1..20)).prop_map(|(end, texts)| Step::Push(end, texts)),
        2 => end().prop_map(Step::Pop),
        3 => (-60_i64..60, text()).prop_map(|(index, text)| Step::Set(index, text)),
        4 => (any::<bool>(), text(), text()).prop_map(|(before, pivot, text)| {
            Step::Insert(if before { Side::Before } else { Side::After }, pivot, text)
        }),
        2 => (0_usize..60, 0_usize..30).prop_map(|(start, count)| Step::RemoveRun(start, count)),
        2 => (end(), text(), 1_usize..6).prop_map(|(end, text, count)| Step::RemoveEqual(end, text, count)),
        2 => (end(), end()).prop_map(|(from, to)| Step::Move(from, to)),
    ]
}

/// Does the step on both and compares what it answers.
fn apply(list: &mut List, model: &mut VecDeque<Vec<u8>>, step: &Step, limit: Limit) {
    let push_both = |list: &mut List, model: &mut VecDeque<Vec<u8>>, end: End, text: &Vec<u8>| {
        list.push(end, text.into(), limit);
        if end == End::Front { model.push_front(text.clone()) } else { model.push_back(text.clone()) }
    };
    let pop_both = |list: &mut List, model: &mut VecDeque<Vec<u8>>, end: End| {
        let expected = if end == End::Front { model.pop_front() } else { model.pop_back() };
        let found = list.pop(end, |item| item.to_vec());
        assert_eq!(found, expected);
        found
    };
    match step {
        Step::Push(end, texts) => {
            list.make_room(texts.iter().map(Vec::len).sum(), texts.len(), limit);
            texts.iter().for_each(|text| push_both(list, model, *end, text));
            return;
        }
        Step::Pop(end) => {
            pop_both(list, model, *end);
        }
        Step::Move(from, to) => {
            if let Some(text) = pop_both(list, model, *from) {
                list.make_room(text.len(), 1, limit);
                push_both(list, model, *to, &text);
            }
        }
        Step::Set(index, text) => {
            list.make_room(text.len(), 1, limit);
            let number = if *index < 0 { model.len() as i64 + index } else { *index };
            let place = usize::try_from(number).ok().and_then(|number| model.get_mut(number));
            assert_eq!(list.set(*index, text.into(), limit), place.is_some());
            place.into_iter().for_each(|place| place.clone_from(text));
        }
        Step::Insert(side, pivot, text) => {
            list.make_room(text.len(), 1, limit);
            let place = model.iter().position(|element| element == pivot);
            assert_eq!(list.insert(pivot.into(), *side, text.into(), limit), place.is_some());
            if let Some(place) = place {
                model.insert(place + usize::from(*side == Side::After), text.clone());
            }
            return;
        }
        Step::RemoveRun(start, count) => {
            list.remove_run(*start, *count);
            let start = (*start).min(model.len());
            model.drain(start..(start + count).min(model.len()));
        }
        Step::RemoveEqual(end, text, count) => {
            let removed = list.remove_equal(text.into(), *end, *count);
            let mut expected = 0;
            while expected < *count {
                let mut numbers = (0..model.len()).filter(|number| model[*number] == *text);
                let number = if *end == End::Front { numbers.next() } else { numbers.next_back() };
                let Some(number) = number else { break };
                model.remove(number);
                expected += 1;
            }
            assert_eq!(removed, expected);
        }
    }
    list.shrink(limit);
}

/// Everything that can be read is as the model has it, and the bytes are those of the allocations.
fn compare(list: &List, model: &VecDeque<Vec<u8>>) {
    assert_eq!(list.len(), model.len());
    assert_eq!(list.is_empty(), model.is_empty());
    assert!(list.iter().map(|item| item.to_vec()).eq(model.iter().cloned()));
    for number in (0..model.len()).step_by(7) {
        let index = number as i64;
        assert_eq!(list.get(index).map(|item| item.to_vec()).as_ref(), model.get(number));
        assert_eq!(list.get(-1 - index).map(|item| item.to_vec()).as_ref(), model.get(model.len() - 1 - number));
        assert!(list.iter_from(number, End::Back).map(|item| item.to_vec()).eq(model.range(number..).cloned()));
        assert!(list.iter_from(number, End::Front).map(|item| item.to_vec()).eq(model.range(..=number).rev().cloned()));
    }
    assert!(list.get(model.len() as i64).is_none() && list.get(-1 - model.len() as i64).is_none());
    let of_nodes: usize = list
        .nodes()
        .map(|node| match node {
            NodeRef::Packed(list) => list.bytes(),
            NodeRef::Plain(text) => crate::size_class(text.len()),
        })
        .sum();
    match list.encoding_name() {
        "listpack" => assert_eq!(list.bytes(), of_nodes),
        _ => assert!(list.bytes() > of_nodes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn lists_do_what_a_vector_does(steps in prop::collection::vec(step(), 1..60), setting in prop_oneof![Just(-2), Just(-1), Just(1), Just(4)]) {
        let (mut list, mut model, limit) = (List::default(), VecDeque::new(), Limit::of(setting));
        for step in &steps {
            apply(&mut list, &mut model, step, limit);
            compare(&list, &model);
        }
        let nodes = list.nodes().map(|node| match node {
            NodeRef::Packed(list) => OwnedNode::Packed(list.clone()),
            NodeRef::Plain(text) => OwnedNode::Plain(text.to_vec()),
        });
        compare(&List::of_nodes(nodes, limit), &model);
        compare(&list.clone(), &model);
    }
}

#[test]
fn a_list_grows_into_nodes_and_shrinks_back() {
    let (mut list, limit) = (List::default(), Limit::default());
    assert_eq!(size_of::<List>(), 8);
    for number in 0..10_000_i64 {
        list.make_room(4, 1, limit);
        list.push(End::Back, number.into(), limit);
    }
    assert_eq!((list.encoding_name(), list.nodes().count()), ("quicklist", 5));
    // Four bytes an element, what a size class adds, and a node's own 24 bytes.
    assert!(list.bytes() < 10_000 * 5 + 1024, "{} bytes", list.bytes());
    list.remove_run(0, 9_900);
    list.shrink(limit);
    assert_eq!((list.encoding_name(), list.get(0)), ("listpack", Some(Item::Int(9_900))));
}

#[test]
fn a_large_element_is_a_node_of_its_own() {
    let (mut list, limit, large) = (List::default(), Limit::default(), vec![b'x'; 8193]);
    list.push(End::Back, b"a".into(), limit);
    list.make_room(large.len(), 1, limit);
    list.push(End::Back, (&large).into(), limit);
    list.push(End::Back, b"b".into(), limit);
    let kinds: Vec<bool> = list.nodes().map(|node| matches!(node, NodeRef::Plain(_))).collect();
    assert_eq!(kinds, [false, true, false]);
    assert!(list.set(1, b"small".into(), limit) && list.set(0, (&large).into(), limit));
    list.pop(End::Front, |item| assert_eq!(item.text_length(), large.len()));
    list.shrink(limit);
    assert_eq!(list.encoding_name(), "listpack");
}

#[test]
fn outcomes_are_logged_so_that_they_replay() {
    let mut fixture = Fixture::new();
    let push = ["RPUSH", "l", "a", "b", "c", "d"];
    assert_eq!(fixture.run(rpush, &push), (":4 ".into(), vec!["RPUSH l a b c d".into()]));
    let (reply, log) = fixture.run(lmpop, &["LMPOP", "2", "none", "l", "LEFT", "COUNT", "2"]);
    assert_eq!((reply.as_str(), log), ("*2 $1 l *2 $1 a $1 b ", vec!["LPOP l 2".into()]));
    assert_eq!(fixture.run(ltrim, &["LTRIM", "l", "0", "-1"]), ("+OK ".into(), vec![]));
    assert_eq!(fixture.run(lpop, &["LPOP", "l", "0"]), ("*0 ".into(), vec![]));
    assert_eq!(fixture.run(lmove, &["LMOVE", "l", "m", "RIGHT", "LEFT"]).1, ["LMOVE l m RIGHT LEFT"]);
    assert_eq!(fixture.run(lpushx, &["LPUSHX", "none", "a"]), (":0 ".into(), vec![]));
    assert_eq!(fixture.run(lrem, &["LREM", "l", "0", "zz"]), (":0 ".into(), vec![]));
}

/// The order of events that Redis 8.2.3 sends.
#[test]
fn events_are_those_of_redis() {
    let mut fixture = Fixture::new();
    fixture.settings.events = crate::Class::GENERIC | crate::Class::LIST | crate::Class::NEW;
    for (handler, line, expected) in [
        (rpush as crate::fixture::Handler, "RPUSH l x", "new l, rpush l"),
        (lmove, "LMOVE l l LEFT RIGHT", "rpush l, lpop l"),
        (lmove, "LMOVE l m RIGHT RIGHT", "new m, rpush m, rpop l, del l"),
        (lset, "LSET m 0 y", "lset m"),
        (linsert, "LINSERT m BEFORE y z", "linsert m"),
        (lrem, "LREM m 0 z", "lrem m"),
        (ltrim, "LTRIM m 0 -1", "ltrim m"),
        (lmpop, "LMPOP 1 m LEFT", "lpop m, del m"),
    ] {
        fixture.run(handler, &line.split(' ').collect::<Vec<_>>());
        let events =
            fixture.events.iter().map(|event| format!("{} {}", event.name, String::from_utf8_lossy(&event.key)));
        assert_eq!(events.collect::<Vec<_>>().join(", "), expected, "{line}");
    }
}
