//! Response bodies sent in frames, so that a slow client does not hold a copy of a large response.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};

/// The body of every response: bytes, a list or the events of a watch.
pub type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

/// Maximum bytes of one frame.
pub(crate) const MAX_FRAME_BYTES: usize = 64 << 10;

/// A body from bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    let bytes = bytes.into();
    if bytes.len() <= MAX_FRAME_BYTES { Full::new(bytes).boxed_unsync() } else { segments(vec![bytes]) }
}

/// A body of known length from segments.
pub(crate) fn segments(parts: Vec<Bytes>) -> Body {
    let mut queue = ByteQueue::default();
    parts.into_iter().for_each(|part| queue.push(part));
    SegmentedBody(queue).boxed_unsync()
}

/// A queue of bytes to send. Large segments are shared with the store, not copied.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    queue: VecDeque<Bytes>,
    length: usize,
}

impl ByteQueue {
    pub(crate) fn push(&mut self, part: impl Into<Bytes>) {
        let part = part.into();
        if !part.is_empty() {
            self.length += part.len();
            self.queue.push_back(part);
        }
    }

    /// Number of queued bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The next frame of at most [`MAX_FRAME_BYTES`]: a part of one segment without a copy, or several small
    /// segments joined.
    pub(crate) fn next_frame(&mut self) -> Option<Bytes> {
        let first = self.queue.front_mut()?;
        if first.len() >= MAX_FRAME_BYTES {
            let piece = first.split_to(MAX_FRAME_BYTES);
            self.length -= piece.len();
            if first.is_empty() {
                self.queue.pop_front();
            }
            return Some(piece);
        }
        if self.queue.len() == 1 {
            self.length = 0;
            return self.queue.pop_front();
        }
        let mut piece = BytesMut::with_capacity(self.length.min(MAX_FRAME_BYTES));
        while let Some(part) = self.queue.front_mut() {
            let room = MAX_FRAME_BYTES - piece.len();
            if room == 0 {
                break;
            }
            let taken = part.split_to(part.len().min(room));
            piece.extend_from_slice(&taken);
            if part.is_empty() {
                self.queue.pop_front();
            }
        }
        self.length -= piece.len();
        Some(piece.freeze())
    }
}

struct SegmentedBody(ByteQueue);

impl http_body::Body for SegmentedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next_frame().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// Attaches a guard to a body; it is dropped when the body was sent or dropped.
pub(crate) fn with_guard<G: Send + Unpin + 'static>(body: Body, guard: G) -> Body {
    GuardedBody { body, _guard: guard }.boxed_unsync()
}

struct GuardedBody<G> {
    body: Body,
    _guard: G,
}

impl<G: Unpin> http_body::Body for GuardedBody<G> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn frames_are_bounded_and_complete() {
        let large: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let parts: Vec<Bytes> = vec![
            Bytes::from_static(b"head"),
            Bytes::from(large.clone()),
            Bytes::new(),
            Bytes::from_static(b","),
            Bytes::from(large.clone()),
            Bytes::from_static(b"tail"),
        ];
        let whole = parts.concat();
        let mut body = segments(parts);
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.expect("never fails").into_data().expect("data");
            assert!(!piece.is_empty() && piece.len() <= MAX_FRAME_BYTES);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, whole);
        assert_eq!(full(large.clone()).collect().await.expect("never fails").to_bytes(), large);
        assert!(segments(Vec::new()).is_end_stream());
    }
}
