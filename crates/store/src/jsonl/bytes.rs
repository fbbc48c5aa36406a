//! A file, read from front to back.

use std::io;

use super::fs::File;

/// The bytes of a file up to an end that was settled before, a window at a time.
pub(crate) struct FileBytes<'a> {
    file: &'a dyn File,
    end: u64,
    /// Where in the file the window begins.
    start: u64,
    window: Vec<u8>,
    /// How much of the window has been passed.
    passed: usize,
    /// How much is read at once.
    step: usize,
}

impl<'a> FileBytes<'a> {
    pub(crate) fn new(file: &'a dyn File, end: u64, step: usize) -> Self {
        Self { file, end, start: 0, window: Vec::new(), passed: 0, step }
    }

    /// Where the file ends, as far as this reader goes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Goes to `offset` and reads on until `least` bytes are held from there, or all to the end.
    pub(crate) fn fill(&mut self, offset: u64, least: usize) -> io::Result<()> {
        self.pass_to(offset);
        while self.held().len() < least && !self.reaches_end() {
            self.read_more(least)?;
        }
        Ok(())
    }

    /// Goes to `offset` and reads all from there.
    pub(crate) fn fill_all(&mut self, offset: u64) -> io::Result<()> {
        self.fill(offset, usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX))
    }

    /// The bytes from where the reader went, as many as there are at hand.
    pub(crate) fn held(&self) -> &[u8] {
        self.window.get(self.passed..).unwrap_or_default()
    }

    /// Whether the bytes held go to the end of the file.
    pub(crate) fn reaches_end(&self) -> bool {
        self.start + self.window.len() as u64 >= self.end
    }

    fn pass_to(&mut self, offset: u64) {
        let passed = offset.checked_sub(self.start).and_then(|passed| usize::try_from(passed).ok());
        match passed {
            Some(passed) if passed <= self.window.len() => self.passed = passed,
            _ => {
                self.window.clear();
                self.passed = 0;
                self.start = offset;
            }
        }
    }

    fn read_more(&mut self, least: usize) -> io::Result<()> {
        self.window.drain(..self.passed);
        self.start += self.passed as u64;
        self.passed = 0;
        let held = self.window.len();
        let position = self.start + held as u64;
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        // At most doubled, so that a file that claims a size it does not have costs no memory.
        let wanted = least.saturating_sub(held).min(held).max(self.step).min(left);
        self.window.resize(held + wanted, 0);
        let free = self.window.get_mut(held..).unwrap_or_default();
        let read = self.file.read_at(position, free);
        self.window.truncate(held + read.as_ref().map_or(0, |read| *read));
        if read? == 0 {
            // Cut by someone since its size was taken.
            self.end = position;
        }
        Ok(())
    }
}
