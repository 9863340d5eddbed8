//! Attribute maps: the data blocks that contain a value of an attribute.
//!
//! ```text
//! directory := (id{u8} pages{u32} (first_hash{u32} offset{u64} length{u32})*)*
//! page      := ((hash − previous hash){varint} (block − previous block){varint})+
//! ```
//!
//! A page contains pairs of a hash and the number of a data block, in their order. Numbers before
//! the first pair are 0, and the previous block is 0 after another hash. A hash may continue on the
//! next page. Readers compare the values of the entries: different values may have one hash.

use std::collections::{BTreeMap, BTreeSet};

use rillbase_binary_format::{ByteReader, ByteWriter as _};

use super::frame::Handle;
use super::reader::{BlockType, TableReader};
use crate::block::Block;
use crate::coding::{to_u32, to_usize};
use crate::error::Result;
use crate::extract::{AttributeBounds, ExtractorVersion, ZoneMap};

/// The size at which a page is complete.
const PAGE_BYTES: usize = 4 << 10;
/// The size of a page's entry in the directory.
const PAGE_ENTRY_BYTES: usize = 16;

/// Collects the pairs of a table.
#[derive(Debug, Default)]
pub(super) struct MapBuilder {
    /// Hash and block of each pair in one number, by attribute.
    pairs: BTreeMap<u8, Vec<u64>>,
    /// Attributes with values that are not indexed.
    ranged: BTreeSet<u8>,
    /// Some entry's attributes are unknown, so that there is no map.
    is_incomplete: bool,
}

/// The parts of a map in a table's properties.
#[derive(Debug, Default)]
pub(super) struct WrittenMap {
    pub(super) directory: Option<Handle>,
    pub(super) unmapped: Option<Vec<u8>>,
}

impl MapBuilder {
    /// Adds a block by its number and the zone of its entries.
    pub(super) fn add(&mut self, block: u64, zone: &mut ZoneMap) {
        self.is_incomplete |= zone.has_unknown() || u32::try_from(block).is_err();
        if self.is_incomplete {
            self.pairs.clear();
            return;
        }
        self.ranged.extend(zone.ranged_attributes());
        for &(id, hash) in zone.distinct_hashes() {
            let pairs = self.pairs.entry(id).or_default();
            pairs.push(u64::from(hash) << 32 | block);
        }
    }

    /// Passes the parts of the map to `write`, which returns their locations.
    pub(super) fn finish(
        mut self,
        write: &mut dyn FnMut(&[u8]) -> Result<Handle>,
    ) -> Result<WrittenMap> {
        if self.is_incomplete {
            return Ok(WrittenMap::default());
        }
        self.pairs.retain(|id, _| !self.ranged.contains(id));
        let mut directory = Vec::new();
        for (id, mut pairs) in self.pairs {
            pairs.sort_unstable();
            let pages = write_pages(&pairs, write)?;
            directory.push(id);
            directory.put_u32_le(to_u32(pages.len()));
            for (first, handle) in pages {
                directory.put_u32_le(first);
                directory.put_u64_le(handle.offset);
                directory.put_u32_le(to_u32(to_usize(handle.length)));
            }
        }
        let written = (!directory.is_empty()).then(|| write(&directory));
        Ok(WrittenMap {
            directory: written.transpose()?,
            unmapped: Some(self.ranged.into_iter().collect()),
        })
    }
}

/// Writes the pages of an attribute, and returns the first hash and the location of each.
fn write_pages(
    pairs: &[u64],
    write: &mut dyn FnMut(&[u8]) -> Result<Handle>,
) -> Result<Vec<(u32, Handle)>> {
    let mut pages = Vec::new();
    let mut page = Vec::new();
    let (mut first, mut previous) = (0, (0, 0));
    for pair in pairs {
        let (hash, block) = ((pair >> 32) as u32, (pair & 0xffff_ffff) as u32);
        if page.len() >= PAGE_BYTES {
            pages.push((first, write(&page)?));
            page.clear();
        }
        if page.is_empty() {
            (first, previous) = (hash, (0, 0));
        }
        let same = hash == previous.0;
        page.put_varint(u64::from(hash - previous.0));
        page.put_varint(u64::from(block - if same { previous.1 } else { 0 }));
        previous = (hash, block);
    }
    if !page.is_empty() {
        pages.push((first, write(&page)?));
    }
    Ok(pages)
}

/// A page's entry in the directory.
#[derive(Debug, Clone, Copy)]
struct PageEntry {
    first: u32,
    handle: Handle,
}

impl PageEntry {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(bytes);
        Some(Self {
            first: reader.u32_le().ok()?,
            handle: Handle {
                offset: reader.u64_le().ok()?,
                length: u64::from(reader.u32_le().ok()?),
            },
        })
    }
}

/// An attribute in a directory, with the entries of its pages.
struct AttributePages<'a> {
    id: u8,
    pages: &'a [[u8; PAGE_ENTRY_BYTES]],
}

/// The attributes in a directory; `None` if it is malformed.
fn attributes(directory: &[u8]) -> Option<Vec<AttributePages<'_>>> {
    let mut reader = ByteReader::new(directory);
    let mut attributes = Vec::new();
    while !reader.is_empty() {
        let id = reader.byte().ok()?;
        let pages = reader.u32_le().ok()? as usize;
        let entries = reader.take(pages.checked_mul(PAGE_ENTRY_BYTES)?).ok()?;
        let (pages, _) = entries.as_chunks();
        attributes.push(AttributePages { id, pages });
    }
    Some(attributes)
}

/// Passes the pairs of a page until `each` returns false. Returns `None` if the page is malformed.
fn pairs(page: &[u8], blocks: u64, mut each: impl FnMut(u32, u32) -> bool) -> Option<()> {
    let mut reader = ByteReader::new(page);
    let (mut hash, mut block) = (0_u32, 0_u32);
    let mut is_first = true;
    while !reader.is_empty() {
        let distance = u32::try_from(reader.varint().ok()?).ok()?;
        let step = u32::try_from(reader.varint().ok()?).ok()?;
        if distance > 0 {
            block = 0;
        } else if step == 0 && !is_first {
            return None;
        }
        is_first = false;
        hash = hash.checked_add(distance)?;
        block = block.checked_add(step)?;
        if u64::from(block) >= blocks {
            return None;
        }
        if !each(hash, block) {
            break;
        }
    }
    Some(())
}

impl TableReader {
    /// The numbers of the data blocks that may contain a value, in order. `None` if the table has
    /// no map of the attribute that this extractor made, or if the bounds contain several values.
    pub(crate) fn blocks_with(
        &self,
        extractor: ExtractorVersion<'_>,
        bounds: &AttributeBounds,
    ) -> Result<Option<Vec<u32>>> {
        let unmapped = self.zone(extractor).and(self.properties.unmapped.as_ref());
        if unmapped.is_none_or(|unmapped| unmapped.contains(&bounds.id)) {
            return Ok(None);
        }
        let Some(value_hash) = bounds.hash() else {
            return Ok(None);
        };
        let mut blocks = Vec::new();
        let Some(map) = self.properties.map else {
            return Ok(Some(blocks));
        };
        let directory = self.block(map, BlockType::Map)?;
        let listed = attributes(directory.bytes()).ok_or_else(|| self.malformed(map))?;
        let listed = listed.into_iter().find(|listed| listed.id == bounds.id);
        let Some(AttributePages { pages, .. }) = listed else {
            return Ok(Some(blocks));
        };
        let first_of =
            |page: &[u8; PAGE_ENTRY_BYTES]| PageEntry::decode(page).map(|page| page.first);
        // The page before may end with the hash.
        let start = pages.partition_point(|page| first_of(page) < Some(value_hash));
        for page in pages.iter().skip(start.saturating_sub(1)) {
            let page = PageEntry::decode(page).ok_or_else(|| self.malformed(map))?;
            if page.first > value_hash {
                break;
            }
            let block = self.block(page.handle, BlockType::Map)?;
            self.pairs_of(&page, &block, |hash, block| {
                if hash == value_hash {
                    blocks.push(block);
                }
                hash <= value_hash
            })?;
        }
        Ok(Some(blocks))
    }

    fn pairs_of(
        &self,
        page: &PageEntry,
        block: &Block,
        mut each: impl FnMut(u32, u32) -> bool,
    ) -> Result<()> {
        let (mut first, blocks) = (None, self.properties.data_blocks);
        pairs(block.bytes(), blocks, |hash, block| {
            first.get_or_insert(hash);
            each(hash, block)
        })
        .filter(|()| first == Some(page.first))
        .ok_or_else(|| self.malformed(page.handle))
    }

    /// Reads and verifies all pages of the map bypassing the cache.
    pub(super) fn verify_map(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let Some(map) = self.properties.map else {
            return Ok(());
        };
        let directory = self.read_block(map, BlockType::Map)?;
        progress(map.length);
        let listed = attributes(directory.bytes()).ok_or_else(|| self.malformed(map))?;
        for AttributePages { pages, .. } in listed {
            let mut previous = None;
            for page in pages {
                let page = PageEntry::decode(page).ok_or_else(|| self.malformed(map))?;
                let block = self.read_block(page.handle, BlockType::Map)?;
                progress(page.handle.length);
                let mut is_ordered = true;
                self.pairs_of(&page, &block, |hash, block| {
                    let pair = Some((hash, block));
                    is_ordered &= previous < pair;
                    previous = pair;
                    true
                })?;
                if !is_ordered {
                    return Err(self.malformed(page.handle));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_contain_all_pairs_and_hashes_continue_on_the_next_page() {
        // Hashes with one block, with several, and with more than fit on one page.
        let hashes = (0..3000_u64).map(|number| number * number * 400);
        let single = hashes.map(|hash| hash << 32 | (hash % 5000));
        let several = (0..9000_u64).map(|block| 77_777 << 32 | block);
        let mut all: Vec<u64> = single.chain(several).collect();
        all.extend([0, 4999, u64::from(u32::MAX) << 32 | 1]);
        all.sort_unstable();
        all.dedup();
        let mut written: Vec<Vec<u8>> = Vec::new();
        let pages = write_pages(&all, &mut |page| {
            written.push(page.to_vec());
            let offset = written.len() as u64;
            Ok(Handle { offset, length: 0 })
        })
        .unwrap();
        let mut decoded = Vec::new();
        for ((first, _), page) in pages.iter().zip(&written) {
            assert!(page.len() < PAGE_BYTES + 10);
            let before = decoded.len();
            let each = |hash, block| {
                decoded.push(u64::from(hash) << 32 | u64::from(block));
                true
            };
            pairs(page, 9000, each).unwrap();
            assert_eq!(
                decoded.get(before).map(|pair| pair >> 32),
                Some(u64::from(*first))
            );
        }
        assert_eq!(decoded, all);
        assert!(written.len() > 4);
    }

    #[test]
    fn malformed_pages_and_directories_are_errors() {
        let all = |_, _| true;
        assert_eq!(pairs(&[1, 4, 0, 1], 6, all), Some(()));
        assert_eq!(
            pairs(&[1, 4, 0, 1], 5, all),
            None,
            "a block that is not there"
        );
        assert_eq!(pairs(&[1, 4, 0, 0], 6, all), None, "a pair twice");
        assert_eq!(pairs(&[1, 4, 0], 6, all), None, "half a pair");
        assert!(attributes(&[1, 0, 0, 0, 0]).is_some());
        assert!(attributes(&[1, 1, 0, 0, 0, 5]).is_none());
        assert!(attributes(&[1, 0xff, 0xff, 0xff, 0xff]).is_none());
    }
}
