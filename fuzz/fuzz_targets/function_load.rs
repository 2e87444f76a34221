//! The loader of libraries: any text is loaded or refused, and what it registers can be called by names that can be told apart.
#![no_main]

mod engine;

use engine::{Nothing, Patience};
use libfuzzer_sys::fuzz_target;
use simurgh_protocol::Reply;
use simurgh_protocol::resp::Protocol;
use simurgh_scripting::{Callable, Library, LuaEngine, Run, ScriptEngine, is_name};
use std::cell::RefCell;

thread_local! {
    static ENGINE: RefCell<LuaEngine> = RefCell::new(LuaEngine::for_functions().expect("memory for an engine"));
}

/// The text as it came, or with the first line that makes it a library.
fn library(text: &[u8]) -> Option<Library> {
    match text.split_first() {
        Some((first, rest)) if first % 8 != 0 => Library::new(1, &[b"#!lua name=fuzzed\n", rest].concat()).ok(),
        Some((_, rest)) => Library::new(1, rest).ok(),
        None => None,
    }
}

fuzz_target!(|text: &[u8]| {
    let Some(library) = library(text) else { return };
    assert!(is_name(library.name.as_bytes()));
    ENGINE.with_borrow_mut(|engine| {
        engine.keep_libraries(&std::collections::BTreeSet::new());
        let Ok(functions) = engine.load(&library, Patience::new(10), &mut Nothing) else { return };
        assert!(!functions.is_empty());
        let names: std::collections::BTreeSet<String> =
            functions.iter().map(|function| function.name.to_ascii_lowercase()).collect();
        assert_eq!(names.len(), functions.len());
        for function in functions.iter().take(8) {
            assert!(is_name(function.name.as_bytes()));
            let callable = Callable::Function { library: &library, name: &function.name, request: &[] };
            let run = Run { callable, keys: &[b"k"], args: &[b"a"], seed: 1, watch: Patience::new(10) };
            let mut reply = Reply::new(Protocol::Resp3);
            if let Err(fault) = engine.run(&run, &mut Nothing, &mut reply) {
                assert!(!fault.text.is_empty());
            }
        }
    });
});
