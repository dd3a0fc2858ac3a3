//! Messages as bytes and back. What is written is what every gRPC peer writes; a message is read from its own bytes, and written
//! into its own, rather than those of the connection's buffer, which makes each of its numbers and byte strings cheaper.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::{Buf as _, BufMut as _};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
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

/// Adds a message to `bytes`.
pub fn append(message: &impl Message, bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.resize(begin + message.encoded_len(), 0);
    message.encode_raw(&mut &mut bytes[begin..]);
}

/// Adds a message to `bytes` as a field of this number of another message, which is written in pieces.
pub fn append_field(number: u32, message: &impl Message, bytes: &mut Vec<u8>) {
    let (begin, len) = (bytes.len(), message.encoded_len());
    bytes.resize(begin + key_len(number) + encoded_len_varint(len as u64) + len, 0);
    let mut rest = &mut bytes[begin..];
    encode_key(number, WireType::LengthDelimited, &mut rest);
    encode_varint(len as u64, &mut rest);
    message.encode_raw(&mut rest);
}

/// Writes messages. Each is put together in a buffer of its own, used again for the next: the connection's asks for room with
/// every byte of a number, and so does a vector that grows. What has its length already does not.
#[derive(Clone, Debug)]
pub struct Writes<T>(Vec<u8>, PhantomData<T>);

impl<T: Message> Encoder for Writes<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let Self(bytes, _) = self;
        append(&message, bytes);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1 as pb;

    fn request(id: u64) -> pb::Request {
        let release = pb::StreamRelease { lease_id: vec![7; 16].into() };
        pb::Request { id, ask: Some(pb::request::Ask::Release(release)) }
    }

    #[test]
    fn what_is_appended_is_what_the_message_is_in_bytes() {
        for id in [0, 1, 127, 128, u64::MAX] {
            let mut bytes = vec![42];
            append(&request(id), &mut bytes);
            assert_eq!(bytes[0], 42);
            assert_eq!(bytes[1..], request(id).encode_to_vec());
        }
    }

    /// Also where number and length take more than one byte.
    #[test]
    fn fields_that_are_appended_make_the_message_that_has_them() {
        let mut bytes = Vec::new();
        let long = pb::Request {
            id: 3,
            ask: Some(pb::request::Ask::Proclaim(pb::StreamProclaim {
                value: "x".repeat(1_000),
                ..pb::StreamProclaim::default()
            })),
        };
        let requests = vec![request(1), long, pb::Request::default()];
        requests.iter().for_each(|request| append_field(2, request, &mut bytes));
        let frame = pb::ClientFrame { requests, ..pb::ClientFrame::default() };
        assert_eq!(bytes, frame.encode_to_vec());
        let mut far = Vec::new();
        append_field(1_000, &request(1), &mut far);
        let mut expected = Vec::new();
        prost::encoding::message::encode(1_000, &request(1), &mut expected);
        assert_eq!(far, expected);
    }
}
