//! Sorting more than fits in memory: runs are sorted one by one, written to a file and merged when they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of records that are sorted at once.
const RUN: usize = 4 << 20;
/// Bytes that are read of a run at once.
const BUFFER: usize = 16 << 10;

/// A file to sort through.
pub trait Spool: Read + Write + Seek {}
impl<T: Read + Write + Seek> Spool for T {}

/// Records of a name and a value, read in byte order of their names; equal names in the order they came.
pub(crate) struct Sorter<S> {
    spool: S,
    /// Where each run in the file ends.
    runs: Vec<u64>,
    /// The run that is being filled.
    bytes: Vec<u8>,
    /// Begin, length of the name and of the value.
    records: Vec<(u32, u32, u32)>,
    sorted: bool,
    run: usize,
}

impl<S> std::fmt::Debug for Sorter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sorter").field("runs", &self.runs.len()).finish_non_exhaustive()
    }
}

impl<S: Spool> Sorter<S> {
    pub(crate) fn new(spool: S) -> Self {
        Self::with_run(spool, RUN)
    }

    pub(crate) fn with_run(spool: S, run: usize) -> Self {
        Self { spool, runs: Vec::new(), bytes: Vec::new(), records: Vec::new(), sorted: true, run }
    }

    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> io::Result<()> {
        if !self.records.is_empty() && self.bytes.len() + name.len() + value.len() > self.run {
            self.spill()?;
        }
        let small = |n: usize| u32::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        let record = (small(self.bytes.len())?, small(name.len())?, small(value.len())?);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.records.push(record);
        self.sorted = false;
        Ok(())
    }

    fn sort(&mut self) {
        if !std::mem::replace(&mut self.sorted, true) {
            let bytes = &self.bytes;
            let name = |r: &(u32, u32, u32)| &bytes[r.0 as usize..(r.0 + r.1) as usize];
            // Stable: the order of equal names counts.
            self.records.sort_by(|a, b| name(a).cmp(name(b)));
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut end = self.spool.seek(SeekFrom::End(0))?;
        let mut out = io::BufWriter::with_capacity(BUFFER, &mut self.spool);
        for (begin, name, value) in &self.records {
            out.write_all(&name.to_le_bytes())?;
            out.write_all(&value.to_le_bytes())?;
            let length = name + value;
            out.write_all(&self.bytes[*begin as usize..(begin + length) as usize])?;
            end += 8 + u64::from(length);
        }
        out.flush()?;
        drop(out);
        self.runs.push(end);
        self.bytes.clear();
        self.records.clear();
        Ok(())
    }

    /// Shows all records in order, as often as wanted.
    pub(crate) fn visit<E: From<io::Error>>(
        &mut self,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        if self.runs.is_empty() {
            for (begin, name, value) in &self.records {
                let (begin, middle) = (*begin as usize, (begin + name) as usize);
                see(&self.bytes[begin..middle], &self.bytes[middle..middle + *value as usize])?;
            }
            return Ok(());
        }
        if !self.records.is_empty() {
            self.spill()?;
        }
        // What is not needed while reading is given back.
        self.bytes = Vec::new();
        self.records = Vec::new();
        let mut cursors: Vec<Cursor> = Vec::with_capacity(self.runs.len());
        let mut begin = 0;
        for end in &self.runs {
            cursors.push(Cursor { at: begin, end: *end, buffer: Vec::new(), from: 0 });
            begin = *end;
        }
        let mut heads = BinaryHeap::new();
        for (i, cursor) in cursors.iter_mut().enumerate() {
            if let Some((name, value)) = cursor.next(&mut self.spool)? {
                heads.push(Reverse((name, i, value)));
            }
        }
        while let Some(Reverse((name, i, value))) = heads.pop() {
            see(&name, &value)?;
            if let Some((name, value)) = cursors[i].next(&mut self.spool)? {
                heads.push(Reverse((name, i, value)));
            }
        }
        Ok(())
    }
}

/// A place in a run.
struct Cursor {
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    from: usize,
}

impl Cursor {
    fn next(&mut self, spool: &mut impl Spool) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.from == self.buffer.len() && self.at == self.end {
            return Ok(None);
        }
        let number = |b: [u8; 4]| u32::from_le_bytes(b) as usize;
        let mut head = [0; 8];
        self.read(spool, &mut head)?;
        let [a, b, c, d, e, f, g, h] = head;
        let mut name = vec![0; number([a, b, c, d])];
        let mut value = vec![0; number([e, f, g, h])];
        self.read(spool, &mut name)?;
        self.read(spool, &mut value)?;
        Ok(Some((name, value)))
    }

    fn read(&mut self, spool: &mut impl Spool, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            if self.from == self.buffer.len() {
                let left = usize::try_from(self.end - self.at).unwrap_or(BUFFER).min(BUFFER);
                if left == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.buffer.resize(left, 0);
                spool.seek(SeekFrom::Start(self.at))?;
                spool.read_exact(&mut self.buffer)?;
                (self.at, self.from) = (self.at + left as u64, 0);
            }
            let n = out.len().min(self.buffer.len() - self.from);
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&self.buffer[self.from..self.from + n]);
            self.from += n;
            out = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_size_give_the_same_order() {
        let names: Vec<String> =
            (0..500u32).map(|i| format!("k{}", i.wrapping_mul(2_654_435_761) % 97)).collect();
        let mut want: Vec<(String, String)> =
            names.iter().enumerate().map(|(i, n)| (n.clone(), i.to_string())).collect();
        want.sort_by(|a, b| a.0.cmp(&b.0));
        for run in [1, 40, 1000, 1 << 20] {
            let mut sorter = Sorter::with_run(io::Cursor::new(Vec::new()), run);
            for (i, name) in names.iter().enumerate() {
                sorter.add(name.as_bytes(), i.to_string().as_bytes()).expect("in memory");
            }
            for _ in 0..2 {
                let mut got = Vec::new();
                sorter
                    .visit(|n, v| {
                        got.push((
                            String::from_utf8_lossy(n).into_owned(),
                            String::from_utf8_lossy(v).into_owned(),
                        ));
                        Ok::<_, io::Error>(())
                    })
                    .expect("in memory");
                assert_eq!(got, want, "{run}");
            }
        }
    }
}
