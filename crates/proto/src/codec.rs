//! Messages as bytes and back. What is written is what every gRPC peer writes; a message is read from its own bytes, and written
//! into its own, rather than those of the connection's buffer, which makes each of its numbers and byte strings cheaper.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::{Buf as _, BufMut as _};
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Writes `T` and reads `U`.
#[derive(Clone, Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + 'static,
    U: Message + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Writes<T>;
    type Decoder = Reads<U>;

    fn encoder(&mut self) -> Writes<T> {
        Writes(Vec::new(), PhantomData)
    }

    fn decoder(&mut self) -> Reads<U> {
        Reads(PhantomData)
    }
}

/// The room that is kept for the next message: more than nearly all need.
const KEPT: usize = 16 * 1024;

/// Writes messages. Each is put together in a buffer of its own, used again for the next: the connection's asks for room with
/// every byte of a number.
#[derive(Clone, Debug)]
pub struct Writes<T>(Vec<u8>, PhantomData<T>);

impl<T: Message> Encoder for Writes<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let Self(bytes, _) = self;
        message.encode(bytes).map_err(|error| Status::internal(error.to_string()))?;
        buffer.put_slice(bytes);
        bytes.clear();
        // A frame that was far larger than most must not keep its room for as long as the stream lives.
        bytes.shrink_to(KEPT);
        Ok(())
    }
}

/// Reads messages.
#[derive(Clone, Debug)]
pub struct Reads<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for Reads<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // Not copied: the bytes are shared with the buffer.
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        U::decode(bytes).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
