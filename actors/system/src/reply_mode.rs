//! CLIENT REPLY: whether what a client asks is answered.
//!
//! A command always writes its reply; what nobody wants is cut off when the request ends. `silent_from` is where in the reply
//! buffer that part begins, so that the mode may change in the middle of a request (within EXEC) and each of the replies
//! there goes by the mode of its moment, as a pipeline's do.

use simurgh_protocol::Reply;

/// What CLIENT REPLY has set.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyMode {
    is_off: bool,
    /// This request is the one that SKIP leaves unanswered.
    is_skipping: bool,
    skips_next: bool,
    silent_from: Option<usize>,
}

impl ReplyMode {
    /// Whether replies are dropped now.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.is_off || self.is_skipping
    }

    /// A request begins.
    #[inline]
    pub(crate) fn begin(&mut self, reply: &Reply) {
        if self.is_silent() {
            self.silent_from = Some(reply.len());
        }
    }

    /// A request has ended.
    #[inline]
    pub(crate) fn end(&mut self, reply: &mut Reply) {
        if let Some(from) = self.silent_from.take() {
            reply.truncate(from);
        }
        self.is_skipping = self.skips_next;
        self.skips_next = false;
    }

    /// CLIENT REPLY ON.
    pub(crate) fn on(&mut self, reply: &mut Reply) {
        self.is_skipping = false;
        self.reset(reply);
    }

    /// CLIENT REPLY OFF; also once no reply may follow before the connection closes.
    pub(crate) fn off(&mut self, reply: &Reply) {
        self.is_off = true;
        self.silent_from.get_or_insert(reply.len());
    }

    /// CLIENT REPLY SKIP.
    pub(crate) fn skip(&mut self) {
        self.skips_next |= !self.is_off;
    }

    /// RESET: ends OFF, but a SKIP before it holds for its own reply.
    pub(crate) fn reset(&mut self, reply: &mut Reply) {
        self.is_off = false;
        if !self.is_skipping
            && let Some(from) = self.silent_from.take()
        {
            reply.truncate(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs requests: `on`, `off`, `skip`, `reset`, several of them joined by `+` as one EXEC, anything else is an ECHO.
    fn replies(requests: &str) -> String {
        let (mut mode, mut reply) = (ReplyMode::default(), Reply::default());
        for request in requests.split(' ') {
            mode.begin(&reply);
            for command in request.split('+') {
                match command {
                    "on" => mode.on(&mut reply),
                    "off" => mode.off(&reply),
                    "skip" => mode.skip(),
                    "reset" => mode.reset(&mut reply),
                    _ => {}
                }
                if !matches!(command, "off" | "skip") {
                    reply.buffer().extend_from_slice(command.as_bytes());
                    reply.buffer().push(b' ');
                }
            }
            mode.end(&mut reply);
        }
        String::from_utf8_lossy(reply.bytes()).trim_end().to_owned()
    }

    #[test]
    fn as_redis_answers() {
        for (requests, expected) in [
            ("skip a b", "b"),
            ("skip skip a b", "b"),
            ("skip on a", "on a"),
            ("off skip a b", ""),
            ("off skip on a b", "on a b"),
            ("off a on b", "on b"),
            ("on a", "on a"),
            ("off reset a", "reset a"),
            ("skip reset a", "a"),
            ("skip off a on b", "on b"),
        ] {
            assert_eq!(replies(requests), expected, "{requests}");
        }
    }

    #[test]
    fn within_a_transaction_each_reply_goes_by_its_moment() {
        assert_eq!(replies("a+off+b c on d"), "a on d");
        assert_eq!(replies("skip+a b c"), "a c");
        assert_eq!(replies("off a+on+b c"), "on b c");
        assert_eq!(replies("a+off+b+on+c d"), "a on c d");
    }
}
