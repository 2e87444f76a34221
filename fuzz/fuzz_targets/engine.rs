//! A script engine for targets that feed its libraries: a server that knows no command, and a script that ends in time.

use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, Reply};
use simurgh_scripting::{CallError, Callable, Fault, Host, LogLevel, LuaEngine, Run, Script, ScriptEngine, Watch, sha1_hex};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

thread_local! {
    static ENGINE: RefCell<LuaEngine> = RefCell::new(LuaEngine::new().expect("memory for an engine"));
}

/// A server without commands.
pub struct Nothing;

impl Host for Nothing {
    fn call(&mut self, _args: &Args<'_>, _reply: &mut Reply) -> Result<(), CallError> {
        Err("ERR there are no commands".into())
    }

    fn log(&mut self, _level: LogLevel, _text: &[u8]) {}
}

/// Ends what runs after so many looks.
pub struct Patience(Cell<u32>);

impl Patience {
    /// After `looks` of them.
    pub fn new(looks: u32) -> Rc<Self> {
        Rc::new(Self(Cell::new(looks)))
    }
}

impl Watch for Patience {
    fn is_killed(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }

    fn clock_seconds(&self) -> f64 {
        0.0
    }
}

/// Runs a script on these arguments; its reply, which is `:1` if what it claims holds.
#[allow(dead_code, reason = "one target has an engine of its own")]
pub fn holds(source: &str, args: &[&[u8]]) {
    let script = Script::new(source.as_bytes()).expect("a script");
    let digest = sha1_hex(source.as_bytes());
    let mut reply = Reply::new(Protocol::Resp2);
    let callable = Callable::Script { digest: &digest, script: &script };
    let run = Run { callable, keys: &[], args, seed: 1, watch: Patience::new(1000) };
    let ended = ENGINE.with_borrow_mut(|engine| engine.run(&run, &mut Nothing, &mut reply));
    match ended {
        Ok(()) => assert_eq!(String::from_utf8_lossy(reply.bytes()), ":1\r\n"),
        // What takes too much memory is ended, and that is all.
        Err(Fault { text, .. }) => {
            assert!(text.windows(10).any(|part| part == b"not enough"), "{}", String::from_utf8_lossy(&text));
        }
    }
}
