//! The place of a publication or subscription: the ids under which it is stored, and its exact
//! extent.
//!
//! A lookup by ids finds all candidates; the extent decides.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::area::{Rectangle, TopicArea, put_doubles, sides};
use crate::error::{Error, Result};
use crate::grid::{CellGrid, Granularity};
use crate::id::DeweyId;

/// How the ids of a topic match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Each id matches only itself: one lookup.
    Flat,
    /// An id matches itself and all above and below it: one lookup per ancestor, and one scan.
    Hierarchy,
}

/// The exact extent of a place.
#[derive(Debug, Clone, PartialEq)]
pub enum TopicExtent {
    /// An id as such.
    Id(DeweyId),
    /// A cell of a grid.
    Cell(DeweyId, Rectangle),
    /// An area of the plane.
    Area(TopicArea),
}

impl TopicExtent {
    /// Whether two extents match. An id that is not a cell never matches an area.
    pub(crate) fn matches(&self, other: &Self, ids: Ids) -> bool {
        match (self, other) {
            (Self::Area(one), Self::Area(two)) => one.intersects(two),
            (Self::Area(area), Self::Cell(_, sides)) | (Self::Cell(_, sides), Self::Area(area)) => {
                area.intersects(&TopicArea::Box(*sides))
            }
            (Self::Area(_), Self::Id(_)) | (Self::Id(_), Self::Area(_)) => false,
            (Self::Id(one), Self::Id(two)) if ids == Ids::Flat => one == two,
            (Self::Id(one) | Self::Cell(one, _), Self::Id(two) | Self::Cell(two, _)) => {
                one.matches(two)
            }
        }
    }

    /// `extent := 0 | area | 3 id{slice} west south east north | 4 id{slice}`; 0 is the single id
    /// under which the record is stored.
    pub(crate) fn encode(&self, under: Option<&DeweyId>, out: &mut Vec<u8>) {
        match self {
            Self::Id(id) if under == Some(id) => out.push(0),
            Self::Id(id) => {
                out.push(4);
                out.put_slice(id.as_bytes());
            }
            Self::Area(area) => area.encode(out),
            Self::Cell(id, sides) => {
                out.push(3);
                out.put_slice(id.as_bytes());
                put_doubles(out, sides);
            }
        }
    }

    pub(crate) fn decode(reader: &mut ByteReader<'_>, under: &[u8]) -> ReadResult<Self> {
        let id = |reader: &ByteReader<'_>, bytes: &[u8]| {
            reader.check(DeweyId::from_bytes(bytes), "an id")
        };
        match reader.byte()? {
            0 => id(reader, under).map(Self::Id),
            3 => {
                let bytes = reader.slice()?;
                Ok(Self::Cell(id(reader, bytes)?, sides(reader)?))
            }
            4 => {
                let bytes = reader.slice()?;
                id(reader, bytes).map(Self::Id)
            }
            kind => TopicArea::decode(reader, kind).map(Self::Area),
        }
    }
}

/// The place of a publication or subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicPlace {
    ids: Vec<DeweyId>,
    extent: TopicExtent,
}

impl TopicPlace {
    /// An id.
    pub fn id(id: DeweyId) -> Self {
        Self {
            ids: vec![id.clone()],
            extent: TopicExtent::Id(id),
        }
    }

    /// A cell of a grid, or a node of a similarly regular tree.
    pub fn cell(grid: &CellGrid, id: DeweyId, granularity: Granularity) -> Result<Self> {
        let what = "the id is not a cell of this grid";
        let sides = grid.rectangle(&id).ok_or(Error::InvalidId { what })?;
        let ids = match granularity {
            Granularity::Fixed => grid.leaves_below(&id)?,
            Granularity::Variable | Granularity::Single => vec![id.clone()],
        };
        Ok(Self {
            ids,
            extent: TopicExtent::Cell(id, sides),
        })
    }

    /// An area of the plane.
    pub fn area(grid: &CellGrid, area: TopicArea, granularity: Granularity) -> Result<Self> {
        Ok(Self {
            ids: grid.cover(&area, granularity)?,
            extent: TopicExtent::Area(area),
        })
    }

    /// A place with known ids and extent.
    pub(crate) fn of_parts(ids: Vec<DeweyId>, extent: TopicExtent) -> Self {
        Self { ids, extent }
    }

    /// The ids under which it is stored, in no particular order.
    pub fn ids(&self) -> &[DeweyId] {
        &self.ids
    }

    /// Its extent.
    pub fn extent(&self) -> &TopicExtent {
        &self.extent
    }
}
