//! Topics as clients know them: the kind determines the places, and the retention how long
//! publications are kept.

use rillbase_engine::Millis;
use rillbase_pubsub::{
    CellGrid, DeweyId, Granularity, Ids, TopicArea, TopicExtent, TopicPlace, TopicSpec,
};

use crate::mercator;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::words::Words;

/// Cells of the deepest level are 306 m wide on the equator.
const GEO_DEPTH: u32 = 17;
/// The maximum retention.
pub(crate) const MAX_RETENTION: Millis = 3650 * 86_400_000;
pub(crate) const DEFAULT_RETENTION: Millis = 86_400_000;

/// The kind of places that a topic has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TopicKind {
    /// Ids that match only themselves.
    Flat,
    /// Ids that match those above and below.
    Hierarchy,
    /// Areas of a plane.
    Grid(CellGrid, GridDimensions),
    /// Areas of the earth, in degrees and metres.
    Geo(CellGrid),
}

/// The parameters of a grid: its box, sides and depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GridDimensions {
    sides: [f64; 4],
    per_side: u64,
    depth: u32,
}

impl TopicKind {
    fn grid(sides: [f64; 4], per_side: u64, depth: u32) -> Result<Self> {
        Ok(Self::Grid(
            CellGrid::new(sides, per_side, depth)?,
            GridDimensions {
                sides,
                per_side,
                depth,
            },
        ))
    }

    /// `flat | hierarchy | geo | grid west south east north sides depth`
    pub(crate) fn parse(words: &mut Words<'_>) -> Result<Self> {
        match words.keyword()?.as_str() {
            "FLAT" => Ok(Self::Flat),
            "HIERARCHY" => Ok(Self::Hierarchy),
            "GEO" => Ok(Self::Geo(CellGrid::new(mercator::bounds(), 2, GEO_DEPTH)?)),
            "GRID" => {
                let sides = [
                    words.number()?,
                    words.number()?,
                    words.number()?,
                    words.number()?,
                ];
                Self::grid(sides, words.number()?, words.number()?)
            }
            other => Err(CommandRefusal::syntax(format!(
                "{other:?} is not a kind of topic: flat, hierarchy, geo or grid"
            ))),
        }
    }

    /// The text that `parse` reads.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Flat => "flat".into(),
            Self::Hierarchy => "hierarchy".into(),
            Self::Geo(_) => "geo".into(),
            Self::Grid(
                _,
                GridDimensions {
                    sides: [w, s, e, n],
                    per_side,
                    depth,
                },
            ) => {
                format!("grid {w} {s} {e} {n} {per_side} {depth}")
            }
        }
    }

    fn grid_of(&self) -> Option<&CellGrid> {
        match self {
            Self::Grid(grid, _) | Self::Geo(grid) => Some(grid),
            Self::Flat | Self::Hierarchy => None,
        }
    }

    fn ids(&self) -> Ids {
        match self {
            Self::Flat => Ids::Flat,
            _ => Ids::Hierarchy,
        }
    }

    /// `ID dewey | CELL dewey | CIRCLE x y radius | BOX west south east north`
    pub(crate) fn place(&self, words: &mut Words<'_>) -> Result<TopicPlace> {
        let word = words.keyword()?;
        match (word.as_str(), self.grid_of()) {
            ("ID", None) => Ok(TopicPlace::id(DeweyId::parse(words.text()?)?)),
            ("CELL", Some(grid)) => {
                let id = DeweyId::parse(words.text()?)?;
                Ok(TopicPlace::cell(grid, id, Granularity::Variable)?)
            }
            ("CIRCLE", Some(grid)) => {
                let centre = [words.number()?, words.number()?];
                self.area(grid, TopicArea::circle(centre, words.number()?)?)
            }
            ("BOX", Some(grid)) => {
                let sides = [
                    words.number()?,
                    words.number()?,
                    words.number()?,
                    words.number()?,
                ];
                self.area(grid, TopicArea::rectangle(sides)?)
            }
            ("ID" | "CELL" | "CIRCLE" | "BOX", _) => Err(CommandRefusal::new(
                "INVALID_PLACE",
                format!("a topic of kind {} does not accept {word}", self.name()),
            )),
            _ => Err(CommandRefusal::syntax(
                "a place is ID, CELL, CIRCLE or BOX with its arguments",
            )),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Hierarchy => "hierarchy",
            Self::Grid(..) => "grid",
            Self::Geo(_) => "geo",
        }
    }

    fn area(&self, grid: &CellGrid, area: TopicArea) -> Result<TopicPlace> {
        let area = match self {
            Self::Geo(_) => mercator::to_plane(area)?,
            _ => area,
        };
        Ok(TopicPlace::area(grid, area, Granularity::Variable)?)
    }

    /// The ids under which a cover of the extent is stored.
    pub(crate) fn ids_of(&self, extent: &TopicExtent) -> Result<Vec<DeweyId>> {
        match (extent, self.grid_of()) {
            (TopicExtent::Id(id) | TopicExtent::Cell(id, _), _) => Ok(vec![id.clone()]),
            (TopicExtent::Area(area), Some(grid)) => Ok(grid.cover(area, Granularity::Variable)?),
            (TopicExtent::Area(_), None) => Err(CommandRefusal::new(
                "MALFORMED",
                "unexpected area in a topic of ids",
            )),
        }
    }

    /// Writes an extent as the words of a place.
    pub(crate) fn write(&self, reply: &mut ReplyWriter<'_>, extent: &TopicExtent) {
        let words = match extent {
            TopicExtent::Id(id) => vec!["ID".into(), id.to_string()],
            TopicExtent::Cell(id, _) => vec!["CELL".into(), id.to_string()],
            TopicExtent::Area(area) => self.words_of(*area),
        };
        reply.array(words.len());
        words.iter().for_each(|word| reply.text(word));
    }

    fn words_of(&self, area: TopicArea) -> Vec<String> {
        let area = match self {
            Self::Geo(_) => mercator::from_plane(area),
            _ => area,
        };
        let (word, numbers) = match area {
            TopicArea::Circle {
                centre: [x, y],
                radius,
            } => ("CIRCLE", vec![x, y, radius]),
            TopicArea::Box(sides) => ("BOX", sides.to_vec()),
        };
        let numbers = numbers.iter().map(ToString::to_string);
        std::iter::once(word.to_owned()).chain(numbers).collect()
    }
}

/// A topic of a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TopicEntry {
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) kind: TopicKind,
    pub(crate) retention: Millis,
}

impl TopicEntry {
    /// The topic as the store knows it.
    pub(crate) fn topic(&self) -> TopicSpec {
        TopicSpec {
            number: self.number,
            ids: self.kind.ids(),
            retention: self.retention,
        }
    }

    /// The topic, and a place that matches everything in it.
    pub(crate) fn everywhere(&self) -> Result<(TopicSpec, TopicPlace)> {
        let topic = TopicSpec {
            ids: Ids::Hierarchy,
            ..self.topic()
        };
        let place = match self.kind.grid_of() {
            None => TopicPlace::id(DeweyId::root()),
            Some(grid) => {
                let all = [f64::MIN, f64::MIN, f64::MAX, f64::MAX];
                TopicPlace::area(grid, TopicArea::rectangle(all)?, Granularity::Single)?
            }
        };
        Ok((topic, place))
    }

    pub(crate) fn write(&self, reply: &mut ReplyWriter<'_>) {
        reply.map(3);
        reply.text("name");
        reply.text(&self.name);
        reply.text("kind");
        reply.text(&self.kind.text());
        reply.text("retention_ms");
        reply.integer(self.retention);
    }
}
