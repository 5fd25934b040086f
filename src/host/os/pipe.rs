//! A pipe that is read only when a read is pending.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Receiver;

/// The usual capacity of a pipe on Linux.
const PIPE_BYTES: usize = 64 << 10;

/// The reading end of a pipe. It is registered with the runtime only while a read is pending; otherwise each write of
/// the agent would wake parlor.
pub struct PipeReader {
    pipe: OwnedFd,
    watched: Option<Receiver>,
    buffer: Box<[u8]>,
}

impl PipeReader {
    /// Wraps the reading end of a pipe.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, watched: None, buffer: vec![0; PIPE_BYTES].into() })
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let max = out.remaining().min(this.buffer.len());
            match rustix::io::read(&this.pipe, this.buffer.get_mut(..max).unwrap_or_default()) {
                Ok(count) => {
                    out.put_slice(this.buffer.get(..count).unwrap_or_default());
                    this.watched = None;
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            let watched = match this.watched.take() {
                Some(watched) => watched,
                None => Receiver::from_owned_fd_unchecked(this.pipe.try_clone()?)?,
            };
            ready!(this.watched.insert(watched).poll_read_ready(cx))?;
            this.watched = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn buffered_data_is_read_at_once_and_then_the_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = PipeReader::new(reader.into()).unwrap();
        writer.write_all(b"one ").unwrap();
        writer.write_all(b"two").unwrap();
        let mut buffer = Vec::with_capacity(100);
        assert_eq!(pipe.read_buf(&mut buffer).await.unwrap(), 7);
        assert!(pipe.watched.is_none(), "no read is pending");
        let write = tokio::task::spawn_blocking(move || writer.write_all(b" three"));
        assert_eq!(pipe.read_buf(&mut buffer).await.unwrap(), 6);
        write.await.unwrap().unwrap();
        assert_eq!(pipe.read_buf(&mut buffer).await.unwrap(), 0);
        assert_eq!(buffer, b"one two three");
    }
}
