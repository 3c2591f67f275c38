//! Numbers and text as bytes, and back without trust.
//!
//! A number takes seven bits a byte, the lowest first; the high bit says that another byte follows.
//! Bytes are preceded by their length. Every read is checked against what is left, and nothing is
//! allocated for a length before that many bytes are there, so a damaged file cannot ask for
//! memory.

/// Appends to a buffer.
pub(crate) trait Put {
    fn put_number(&mut self, number: u64);
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.push(number as u8);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Reads what [`Put`] wrote; `None` as soon as it does not fit.
pub(crate) struct Take<'b>(pub(crate) &'b [u8]);

impl<'b> Take<'b> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// `None` when it is cut off or has more bytes than 64 bits can need.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.exactly(length)
    }

    pub(crate) fn exactly(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Eight bytes, little endian: for hashes, which a variable length would make longer.
    pub(crate) fn fixed(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// A number of things that follow, each at least a byte long. One larger than the bytes left is
    /// refused, so that it can be used to reserve memory.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_come_back() {
        let mut buffer = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            buffer.put_number(number);
        }
        buffer.put_bytes(b"path");
        let mut take = Take(&buffer);
        let numbers: Vec<_> = (0..5).map(|_| take.number()).collect();
        assert_eq!(numbers, [0, 127, 128, 300, u64::MAX].map(Some));
        assert_eq!(take.bytes(), Some(b"path".as_slice()));
        assert_eq!(take.byte(), None);
    }

    #[test]
    fn what_is_cut_or_endless_is_refused() {
        assert_eq!(Take(&[0x80]).number(), None);
        assert_eq!(Take(&[0xff; 12]).number(), None);
        assert_eq!(Take(&[5, b'a']).bytes(), None);
        assert_eq!(Take(&[9]).count(), None);
    }
}
