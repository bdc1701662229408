//! Bit streams, and a fixed Huffman code for bytes.
//!
//! Quake 3 shipped a table made from recorded traffic. This one is computed from a formula of the
//! same shape: small bytes are frequent, and no byte is rare enough for a very long code.

use std::{cmp::Reverse, collections::BinaryHeap, sync::OnceLock};

use super::bytes::Input;
use crate::harness::ReceiveError;

/// Appends bits, lowest first.
#[derive(Default)]
pub(super) struct BitWriter {
    output: Vec<u8>,
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// At most 32 bits at a time.
    pub(super) fn bits(&mut self, bits: u32, count: u32) {
        self.pending |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.output.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    pub(super) fn byte(&mut self, byte: u8) {
        let (code, length) = table().codes[usize::from(byte)];
        self.bits(code, length);
    }

    pub(super) fn varint(&mut self, value: u64) {
        let mut bytes = Vec::with_capacity(10);
        super::bytes::write_varint(&mut bytes, value);
        bytes.into_iter().for_each(|byte| self.byte(byte));
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.output.push(self.pending as u8);
        }
        self.output
    }
}

/// Reads what [`BitWriter`] wrote.
pub(super) struct BitReader<'a> {
    input: Input<'a>,
    pending: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        Self {
            input,
            pending: 0,
            count: 0,
        }
    }

    /// At most 32 bits at a time.
    pub(super) fn bits(&mut self, count: u32) -> Result<u32, ReceiveError> {
        while self.count < count {
            self.pending |= u64::from(self.input.byte()?) << self.count;
            self.count += 8;
        }
        let bits = self.pending & ((1 << count) - 1);
        self.pending >>= count;
        self.count -= count;
        Ok(bits as u32)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReceiveError> {
        let mut node = table().root;
        loop {
            match table().nodes[node] {
                Node::Leaf(byte) => return Ok(byte),
                Node::Fork(children) => node = children[self.bits(1)? as usize],
            }
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, ReceiveError> {
        let mut bytes = Vec::with_capacity(10);
        while bytes.len() < 10 {
            let byte = self.byte()?;
            bytes.push(byte);
            if byte < 0x80 {
                break;
            }
        }
        Input(&bytes).varint()
    }
}

struct Table {
    nodes: Vec<Node>,
    root: usize,
    /// Code, first bit lowest, and its length, by byte.
    codes: [(u32, u32); 256],
}

#[derive(Clone, Copy)]
enum Node {
    Leaf(u8),
    Fork([usize; 2]),
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut nodes: Vec<Node> = (0..=255).map(Node::Leaf).collect();
        let weight = |byte: usize| 100_000 / (byte as u64 + 2) + 300;
        let mut heap: BinaryHeap<_> = (0..256).map(|byte| Reverse((weight(byte), byte))).collect();
        while let (Some(Reverse(a)), Some(Reverse(b))) = (heap.pop(), heap.pop()) {
            heap.push(Reverse((a.0 + b.0, nodes.len())));
            nodes.push(Node::Fork([a.1, b.1]));
            if heap.len() == 1 {
                break;
            }
        }
        let root = nodes.len() - 1;
        let mut codes = [(0, 0); 256];
        let mut open = vec![(root, 0u32, 0u32)];
        while let Some((node, code, length)) = open.pop() {
            match nodes[node] {
                Node::Leaf(byte) => codes[usize::from(byte)] = (code, length),
                Node::Fork([zero, one]) => {
                    open.push((zero, code, length + 1));
                    open.push((one, code | 1 << length, length + 1));
                }
            }
        }
        Table { nodes, root, codes }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_bits_return_and_small_bytes_are_short() {
        let mut writer = BitWriter::default();
        for byte in 0..=255 {
            writer.byte(byte);
            writer.bits(u32::from(byte) & 7, 3);
            writer.varint(u64::from(byte) << 49);
        }
        let bytes = writer.finish();
        let mut reader = BitReader::new(Input(&bytes));
        for byte in 0..=255 {
            assert_eq!(reader.byte(), Ok(byte));
            assert_eq!(reader.bits(3), Ok(u32::from(byte) & 7));
            assert_eq!(reader.varint(), Ok(u64::from(byte) << 49));
        }
        assert!(table().codes[0].1 <= 4 && table().codes.iter().all(|code| code.1 <= 16));
    }
}
