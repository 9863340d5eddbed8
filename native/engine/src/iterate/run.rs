//! A cursor over a run, whose files are opened in turn.

use std::sync::Arc;

use crate::error::Result;
use crate::head::KeyHead;
use crate::key::Tag;
use crate::table::cursor::TableCursor;
use crate::table::zone_filter::ZoneFilter;
use crate::version::SortedRun;
use crate::version::table_cache::TableCache;

/// Iterates over the files of a run in both directions.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<SortedRun>,
    tables: Arc<TableCache>,
    past_cache: bool,
    filter: Option<Arc<ZoneFilter>>,
    position: usize,
    table: Option<TableCursor>,
}

impl RunCursor {
    pub(crate) fn new(run: Arc<SortedRun>, tables: Arc<TableCache>, past_cache: bool) -> Self {
        Self {
            run,
            tables,
            past_cache,
            filter: None,
            position: usize::MAX,
            table: None,
        }
    }

    /// A cursor that skips what the filter excludes when moving forward.
    pub(crate) fn filtered(mut self, filter: Arc<ZoneFilter>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Whether a filter of the run admits one of these heads of keys.
    pub(crate) fn may_have(&self, heads: &[&[u8]], of: &KeyHead) -> Result<bool> {
        for head in heads {
            if may_have_head(&self.run, &self.tables, head, of)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableCursor::is_valid)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableCursor::key)
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.table.as_ref().map_or(Tag::OLDEST, TableCursor::tag)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableCursor::value)
    }

    /// Opens the file at a position, if there is one.
    fn enter(&mut self, position: usize) -> Result<Option<&mut TableCursor>> {
        let Some(file) = self.run.files.get(position) else {
            self.table = None;
            self.position = usize::MAX;
            return Ok(None);
        };
        if self.position != position || self.table.is_none() {
            let table = self.tables.table(file)?;
            let filter = self.filter.clone();
            self.table = Some(TableCursor::new(table, self.past_cache).filtered(filter));
            self.position = position;
        }
        Ok(self.table.as_mut())
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        if let Some(table) = self.enter(0)? {
            table.first()?;
        }
        self.skip_forward()
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        let last = self.run.files.len().wrapping_sub(1);
        if let Some(table) = self.enter(last)? {
            table.last()?;
        }
        self.skip_backward()
    }

    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let position = self.run.position(key);
        if let Some(table) = self.enter(position)? {
            table.seek(key, tag)?;
        }
        self.skip_forward()
    }

    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.seek(key, tag)?;
        if self.is_valid() {
            self.previous()
        } else {
            self.last()
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.next()?;
            if table.is_valid() {
                return Ok(());
            }
        }
        self.skip_forward()
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.previous()?;
        }
        self.skip_backward()
    }

    /// Moves from the end of a file to the next one with entries.
    fn skip_forward(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.is_valid()) {
            if let Some(table) = self.enter(self.position + 1)? {
                table.first()?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.is_valid()) {
            if let Some(table) = self.enter(self.position.wrapping_sub(1))? {
                table.last()?;
            }
        }
        Ok(())
    }
}

/// Whether a run may have keys with this head in the keyspace.
pub(crate) fn may_have_head(
    run: &SortedRun,
    tables: &TableCache,
    head: &[u8],
    of: &KeyHead,
) -> Result<bool> {
    for file in run.files.iter().skip(run.position(head)) {
        let smallest = file.meta.smallest.as_slice();
        if smallest > head && !smallest.starts_with(head) {
            return Ok(false);
        }
        if tables.table(file)?.may_have_head(head, of)? {
            return Ok(true);
        }
    }
    Ok(false)
}
