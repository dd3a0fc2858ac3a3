//! Messages as bytes and back. What is written is what every gRPC peer writes; a message is read from its own bytes rather than
//! from the connection's buffer, which makes each of its numbers and byte strings cheaper to read.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf as _;
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
        Writes(PhantomData)
    }

    fn decoder(&mut self) -> Reads<U> {
        Reads(PhantomData)
    }
}

/// Writes messages.
#[derive(Clone, Debug)]
pub struct Writes<T>(PhantomData<T>);

impl<T: Message> Encoder for Writes<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
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
