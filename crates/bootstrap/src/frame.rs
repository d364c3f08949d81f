//! What travels between ranks, and the pure functions from and to bytes.
//!
//! A frame is `XOVR`, the protocol version (u16), the length of the payload (u32), both little
//! endian, and the payload: a [`Message`] in postcard's format.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Refusal};
use crate::identity::Identity;

/// Version of this protocol; peers of another version are refused.
pub(crate) const VERSION: u16 = 2;

/// No frame may be longer, so that a stranger's length cannot make a rank allocate without bound.
/// Control-plane payloads are handles and reports: kilobytes.
pub(crate) const MAX_PAYLOAD: usize = 64 << 20;

/// Bound before a peer is known: a hello holds a few short strings.
pub(crate) const MAX_HELLO: usize = 4 << 10;

/// Most descriptors that one rank may give, or all ranks together receive, in one exchange.
pub(crate) const MAX_DESCRIPTORS: usize = 1024;

const MAGIC: [u8; 4] = *b"XOVR";
const HEADER: usize = 10;

/// One frame's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Joining: the first frame of every peer.
    Hello(Hello),
    /// Rank 0 has taken the peer, and waits for the others.
    Noted { label: String },
    /// All have come: who they are, in rank order.
    Welcome { identities: Vec<Identity> },
    /// Rank 0 does not take the peer, or ends the rendezvous.
    Refused(Refusal),
    /// A rank's part of exchange `seq`; `descriptors` travel beside the bytes.
    Part { seq: u64, step: String, descriptors: u32, body: Vec<u8> },
    /// Everyone's parts, with the number of descriptors of each.
    All { seq: u64, descriptors: Vec<u32>, bodies: Vec<Vec<u8>> },
    /// The sender has waited for so long in exchange `seq`, and its deadline has passed: who is missing?
    Late { seq: u64, waited: Duration },
    /// The channel has failed, for everyone.
    Failed(Failure),
}

/// Who wants to join, and what it believes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) job: String,
    pub(crate) attempt: u32,
    /// The run's random number, where a rendezvous file tells it; else 0.
    pub(crate) run: u64,
    pub(crate) world: u32,
    pub(crate) rank: u32,
    pub(crate) identity: Identity,
}

/// Bytes that are no frame of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it sent `{0}`, which is not this program's protocol")]
    Foreign(String),
    #[error("it speaks protocol version {0}, this program version {VERSION}")]
    Version(u16),
    #[error("it announced a frame of {length} bytes where at most {limit} are allowed")]
    TooLong { length: usize, limit: usize },
    #[error("it sent a frame that cannot be read: {0}")]
    Malformed(String),
}

/// The first frame of `input` and its length, or `None` if more bytes are needed.
pub(crate) fn parse(input: &[u8], limit: usize) -> Result<Option<(Message, usize)>, FrameError> {
    let seen = input.len().min(MAGIC.len());
    if input[..seen] != MAGIC[..seen] {
        return Err(FrameError::Foreign(printable(input)));
    }
    let Some((header, rest)) = input.split_first_chunk::<HEADER>() else { return Ok(None) };
    let version = u16::from_le_bytes([header[4], header[5]]);
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    let length = u32::from_le_bytes([header[6], header[7], header[8], header[9]]) as usize;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    match postcard::take_from_bytes(payload) {
        Ok((message, [])) => Ok(Some((message, HEADER + length))),
        Ok((_, surplus)) => Err(FrameError::Malformed(format!("{} surplus bytes", surplus.len()))),
        Err(e) => Err(FrameError::Malformed(e.to_string())),
    }
}

/// The frame of a message, or the reason why it cannot be one.
pub(crate) fn encode(message: &Message) -> Result<Vec<u8>, FrameError> {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    let mut frame =
        postcard::to_extend(message, frame).map_err(|e| FrameError::Malformed(e.to_string()))?;
    let length = frame.len() - HEADER;
    if length > MAX_PAYLOAD {
        return Err(FrameError::TooLong { length, limit: MAX_PAYLOAD });
    }
    frame[6..HEADER].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// The start of what a stranger said, for a message: one line, at most 32 bytes.
fn printable(bytes: &[u8]) -> String {
    let line = bytes.split(|b| *b == b'\r' || *b == b'\n').next().unwrap_or_default();
    line[..line.len().min(32)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part() -> Message {
        Message::Part { seq: 7, step: "exchange facts".into(), descriptors: 2, body: vec![9; 33] }
    }

    #[test]
    fn reads_what_it_wrote_and_waits_for_the_rest() {
        let frame = encode(&part()).unwrap();
        for cut in 0..frame.len() {
            assert_eq!(parse(&frame[..cut], MAX_PAYLOAD), Ok(None), "cut at {cut}");
        }
        let mut two = frame.clone();
        two.extend_from_slice(b"XO");
        assert_eq!(parse(&two, MAX_PAYLOAD), Ok(Some((part(), frame.len()))));
    }

    #[test]
    fn names_strangers_at_their_first_byte() {
        let e = parse(b"GET / HTTP/1.1\r\nHost: x", MAX_HELLO).unwrap_err();
        assert_eq!(e.to_string(), "it sent `GET / HTTP/1.1`, which is not this program's protocol");
        assert!(matches!(parse(b"\x16", MAX_HELLO), Err(FrameError::Foreign(_))));
    }

    #[test]
    fn refuses_versions_lengths_and_surplus() {
        let mut frame = encode(&part()).unwrap();
        assert!(matches!(parse(&frame, 8), Err(FrameError::TooLong { limit: 8, .. })));
        frame[4] = 9;
        assert_eq!(parse(&frame, MAX_PAYLOAD), Err(FrameError::Version(9)));
        let mut frame = encode(&Message::Late { seq: 1, waited: Duration::ZERO }).unwrap();
        frame.push(0);
        frame[6] += 1;
        assert!(matches!(parse(&frame, MAX_PAYLOAD), Err(FrameError::Malformed(_))));
    }

    proptest! {
        /// Any bytes: no panic, and whatever is read is written back as the same message.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            check(&bytes);
        }

        /// Bytes after a good header reach the payload's parser.
        #[test]
        fn any_payload(payload in proptest::collection::vec(any::<u8>(), 0..512)) {
            let mut frame = b"XOVR\x01\0".to_vec();
            frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            frame.extend_from_slice(&payload);
            check(&frame);
        }
    }

    fn check(bytes: &[u8]) {
        if let Ok(Some((message, used))) = parse(bytes, MAX_PAYLOAD) {
            assert!(used <= bytes.len());
            let again = encode(&message).unwrap();
            assert_eq!(parse(&again, MAX_PAYLOAD).unwrap().unwrap().0, message);
        }
    }
}
