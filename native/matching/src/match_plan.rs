//! The plan of a query: the index entries by which documents reach it.

use rillbase_query::bson::BsonType;
use rillbase_query::limits::NESTING_DEPTH;
use rillbase_query::path::FieldPath;

use crate::class::Class;
use crate::entry::{EntrySpec, Probe};

/// The entries of a query.
#[derive(Debug, Clone)]
pub(crate) struct MatchPlan {
    /// None of them: it never matches.
    pub(crate) entries: Vec<EntrySpec>,
    pub(crate) class: Class,
    /// The share of documents that are expected to meet one.
    pub(crate) selectivity: f64,
}

pub(crate) fn one(path: FieldPath, probe: Probe, class: Class, selectivity: f64) -> MatchPlan {
    MatchPlan {
        entries: vec![EntrySpec { path, probe }],
        class,
        selectivity,
    }
}

pub(crate) fn several(
    path: &FieldPath,
    probes: impl IntoIterator<Item = Probe>,
    class: Class,
    selectivity: f64,
) -> MatchPlan {
    let entry = |probe| EntrySpec {
        path: path.clone(),
        probe,
    };
    MatchPlan {
        entries: probes.into_iter().map(entry).collect(),
        class,
        selectivity,
    }
}

pub(crate) fn of_kinds(
    path: &FieldPath,
    kinds: impl Iterator<Item = BsonType>,
    selectivity: f64,
) -> MatchPlan {
    several(path, kinds.map(Probe::Kind), Class::Existence, selectivity)
}

/// A plan with the entries of all plans.
pub(crate) fn any_of(plans: Vec<MatchPlan>) -> MatchPlan {
    let mut all = MatchPlan {
        entries: Vec::new(),
        class: Class::Never,
        selectivity: 0.0,
    };
    for plan in plans {
        all.class = match all.class {
            Class::Never => plan.class,
            class if class == plan.class => class,
            _ => Class::Mixed,
        };
        all.selectivity = (all.selectivity + plan.selectivity).min(1.0);
        all.entries.extend(plan.entries);
    }
    all
}

pub(crate) fn joined(prefix: &FieldPath, path: &FieldPath) -> FieldPath {
    if prefix.segments().is_empty() {
        return path.clone();
    }
    let segments = prefix.segments().iter().chain(path.segments());
    let names: Vec<&str> = segments.map(|segment| &*segment.name).collect();
    FieldPath::new(&names.join("."))
}

/// Whether a path is deeper than any document. It would occupy nodes of the tree of paths in vain.
pub(crate) fn is_too_long(path: &FieldPath) -> bool {
    path.segments().len() > NESTING_DEPTH
}
