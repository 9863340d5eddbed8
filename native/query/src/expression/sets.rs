//! Sets: arrays without order and duplicates. Results are in ascending order.

use std::collections::BTreeMap;

use super::function::Function as F;
use super::item::{Args, NULL, Out, array, boolean};
use crate::bson::{Array, ValueRef};
use crate::error::EvaluationFailure;
use crate::key::encode_key;
use crate::truth::is_true;

/// Values by their keys: equal values have equal keys.
type Set<'v> = BTreeMap<Vec<u8>, ValueRef<'v>>;

fn set(values: Array<'_>) -> Set<'_> {
    values
        .iter()
        .map(|value| (encode_key(value), value))
        .collect()
}

pub(super) fn call<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let must_be_arrays = matches!(
        function,
        F::SetEquals | F::SetIsSubset | F::AllElementsTrue | F::AnyElementTrue
    );
    if !must_be_arrays && args.any_null() {
        return Ok(NULL);
    }
    match function {
        F::AllElementsTrue => return Ok(boolean(args.array(0)?.iter().all(is_true))),
        F::AnyElementTrue => return Ok(boolean(args.array(0)?.iter().any(is_true))),
        _ => {}
    }
    let mut sets = Vec::with_capacity(args.len());
    for index in 0..args.len() {
        sets.push(set(args.array(index)?));
    }
    let Some((first, rest)) = sets.split_first() else {
        return Ok(super::item::empty_array());
    };
    let in_all = |key: &Vec<u8>| rest.iter().all(|other| other.contains_key(key));
    Ok(match function {
        F::SetEquals => boolean(rest.iter().all(|other| first.keys().eq(other.keys()))),
        F::SetIsSubset => boolean(first.keys().all(in_all)),
        F::SetIntersection => array(
            first
                .iter()
                .filter(|(key, _)| in_all(key))
                .map(|(_, value)| *value),
        ),
        F::SetDifference => {
            let kept = first
                .iter()
                .filter(|(key, _)| !rest.iter().any(|other| other.contains_key(*key)));
            array(kept.map(|(_, value)| *value))
        }
        _ => {
            let mut all = Set::new();
            sets.iter()
                .for_each(|set| all.extend(set.iter().map(|(key, value)| (key.clone(), *value))));
            array(all.into_values())
        }
    })
}
