//! The reply writer: appends RESP2 or RESP3 straight to the connection's output buffer.
//!
//! A handler says what it means (`map`, `null`, `double`), and the writer picks the form for the protocol the client chose
//! with `HELLO`. Error and status lines are cleaned of bytes that would end them early, so that whatever a handler puts into
//! one, the number of replies stays the number of requests (CVE-2025-67733).

/// The version a client chose with `HELLO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection starts with.
    Resp2,
    /// With maps, sets, doubles, booleans, nulls and pushes.
    Resp3,
}

/// A reply buffer that knows which protocol it speaks.
#[derive(Debug)]
pub struct Reply {
    out: Vec<u8>,
    protocol: Protocol,
}

impl Default for Reply {
    fn default() -> Self {
        Self::new(Protocol::Resp2)
    }
}

impl Reply {
    /// An empty buffer.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { out: Vec::new(), protocol }
    }

    /// The protocol in use.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Speaks `protocol` from the next reply on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// What has been written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The buffer itself, for the connection that sends it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Length in bytes of what has been written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Memory that the buffer holds, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.out.capacity()
    }

    /// Whether nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back everything behind `length`: a reply that turned out different, or that `CLIENT REPLY` suppresses.
    pub fn truncate(&mut self, length: usize) {
        self.out.truncate(length);
    }

    fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A status line.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.line(text.as_bytes());
    }

    /// A status line whose bytes may be no UTF-8.
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.out.push(b'+');
        self.line(text);
    }

    /// An error line. `text` begins with its code, as in `ERR syntax error`.
    pub fn error(&mut self, text: impl std::fmt::Display) {
        self.out.push(b'-');
        let from = self.out.len();
        use std::io::Write as _;
        write!(self.out, "{text}").expect("writing to a vector cannot fail");
        for byte in &mut self.out[from..] {
            if matches!(byte, b'\r' | b'\n' | 0) {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// An error line whose bytes may be no UTF-8. Line ends that a client's word has brought to its end are cut off.
    pub fn error_bytes(&mut self, text: &[u8]) {
        self.out.push(b'-');
        let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        self.line(&text[..end]);
    }

    fn line(&mut self, text: &[u8]) {
        self.out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) {
        match value {
            0 => self.out.extend_from_slice(b":0\r\n"),
            1 => self.out.extend_from_slice(b":1\r\n"),
            _ => {
                self.out.push(b':');
                self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// A length or count as an integer.
    pub fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A bulk string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 32);
        write_header(&mut self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer as a bulk string, as a stored integer is read.
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A bulk string that is text for people: verbatim in RESP3.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        if self.is_resp3() {
            write_header(&mut self.out, b'=', text.len() + 4);
            self.out.extend_from_slice(format.as_bytes());
            self.out.push(b':');
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// The null bulk string (`_` in RESP3).
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The null array (`_` in RESP3).
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// A boolean; 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        match (self.is_resp3(), value) {
            (true, true) => self.out.extend_from_slice(b"#t\r\n"),
            (true, false) => self.out.extend_from_slice(b"#f\r\n"),
            (false, _) => self.integer(i64::from(value)),
        }
    }

    /// A floating-point number; its text as a bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = crate::number::format_f64(value);
        if self.is_resp3() {
            self.out.push(b',');
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// The header of an array of `length` replies.
    pub fn array(&mut self, length: usize) {
        write_header(&mut self.out, b'*', length);
    }

    /// The header of a map of `length` pairs; a flat array in RESP2.
    pub fn map(&mut self, length: usize) {
        if self.is_resp3() {
            write_header(&mut self.out, b'%', length);
        } else {
            write_header(&mut self.out, b'*', length * 2);
        }
    }

    /// The header of a set of `length` replies; an array in RESP2.
    pub fn set(&mut self, length: usize) {
        let kind = if self.is_resp3() { b'~' } else { b'*' };
        write_header(&mut self.out, kind, length);
    }

    /// The header of an out-of-band push; an array in RESP2.
    pub fn push(&mut self, length: usize) {
        let kind = if self.is_resp3() { b'>' } else { b'*' };
        write_header(&mut self.out, kind, length);
    }

    /// An array whose length is known only afterwards: call [`Reply::close_array`] with the returned mark.
    #[must_use]
    pub fn open_array(&mut self) -> usize {
        self.out.len()
    }

    /// Puts the header of an array of `length` before everything written since `mark`.
    pub fn close_array(&mut self, mark: usize, length: usize) {
        let mut header = Vec::with_capacity(16);
        write_header(&mut header, b'*', length);
        self.out.splice(mark..mark, header);
    }

    /// [`Reply::close_array`], of a set.
    pub fn close_set(&mut self, mark: usize, length: usize) {
        let mut header = Vec::with_capacity(16);
        write_header(&mut header, if self.is_resp3() { b'~' } else { b'*' }, length);
        self.out.splice(mark..mark, header);
    }

    /// [`Reply::close_array`], of a map of `length` pairs; a flat array in RESP2.
    pub fn close_map(&mut self, mark: usize, length: usize) {
        let mut header = Vec::with_capacity(16);
        let (kind, number) = if self.is_resp3() { (b'%', length) } else { (b'*', length * 2) };
        write_header(&mut header, kind, number);
        self.out.splice(mark..mark, header);
    }
}

/// Appends a command as a client, the log or a replica's primary sends it: an array of bulk strings.
pub fn encode_command<'a>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'a [u8]>) {
    write_header(out, b'*', words.len());
    for word in words {
        write_header(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends `<kind><number>\r\n`.
pub(crate) fn write_header(out: &mut Vec<u8>, kind: u8, number: usize) {
    if number < 10 {
        out.extend_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']);
        return;
    }
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}
