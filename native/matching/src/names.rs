//! Interns names of sixteen bytes as small numbers.

use std::collections::HashMap;

/// Interned names with use counts; numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct InternedNames {
    numbers: HashMap<[u8; 16], u32>,
    held: Vec<([u8; 16], usize)>,
    free: Vec<u32>,
}

impl InternedNames {
    /// The number of a name, if it has one.
    pub(crate) fn find(&self, name: &[u8; 16]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Returns the number of a name and increments its use count.
    pub(crate) fn hold(&mut self, name: [u8; 16]) -> u32 {
        let number = self.numbers.get(&name).copied();
        let number = number.unwrap_or_else(|| self.give(name));
        if let Some((_, uses)) = self.held.get_mut(number as usize) {
            *uses += 1;
        }
        number
    }

    fn give(&mut self, name: [u8; 16]) -> u32 {
        let number = match self.free.pop() {
            Some(number) => number,
            None => u32::try_from(self.held.len()).unwrap_or(u32::MAX),
        };
        match self.held.get_mut(number as usize) {
            Some(slot) => *slot = (name, 0),
            None => self.held.push((name, 0)),
        }
        self.numbers.insert(name, number);
        number
    }

    pub(crate) fn uses(&self, name: &[u8; 16]) -> usize {
        let number = self.numbers.get(name);
        let held = number.and_then(|number| self.held.get(*number as usize));
        held.map_or(0, |(_, uses)| *uses)
    }

    /// Decrements the use count; returns whether that was the last use.
    pub(crate) fn release(&mut self, number: u32) -> bool {
        let Some((name, uses)) = self.held.get_mut(number as usize) else {
            return false;
        };
        *uses = uses.saturating_sub(1);
        if *uses == 0 && self.numbers.remove(name).is_some() {
            self.free.push(number);
            return true;
        }
        false
    }

    pub(crate) fn in_use(&self) -> impl Iterator<Item = ([u8; 16], usize)> {
        self.held.iter().copied().filter(|(_, uses)| *uses > 0)
    }
}
