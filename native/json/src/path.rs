//! The open arrays and objects: enough to reject duplicate keys and to report the location.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

/// Up to this many keys an object is searched key by key; beyond it by a hash set, so that a
/// hostile object with a million keys costs no more than a harmless one.
const LINEAR_SEARCH_KEYS: usize = 16;
const MAX_POINTER_BYTES: usize = 1_024;

/// The keys of all open objects are in one stack, those of the innermost object on top.
#[derive(Default)]
pub(crate) struct OpenContainers<'i> {
    open: Vec<OpenContainer<'i>>,
    keys: Vec<Cow<'i, str>>,
}

struct OpenContainer<'i> {
    kind: ContainerKind<'i>,
    /// Whether one of its values has begun and not ended; that value is part of the pointer.
    in_value: bool,
}

enum ContainerKind<'i> {
    Array {
        /// Values that have ended.
        ended: usize,
    },
    Object {
        /// Its keys are `keys[first_key..]` while no object inside it is open.
        first_key: usize,
        /// All its keys, once there are more than `LINEAR_SEARCH_KEYS`.
        seen: Option<HashSet<Cow<'i, str>>>,
    },
}

/// What the innermost open container is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    Nothing,
    Array,
    Object,
}

impl<'i> OpenContainers<'i> {
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn inside(&self) -> Inside {
        match self.open.last().map(|container| &container.kind) {
            None => Inside::Nothing,
            Some(ContainerKind::Array { .. }) => Inside::Array,
            Some(ContainerKind::Object { .. }) => Inside::Object,
        }
    }

    pub(crate) fn open_array(&mut self) {
        self.open.push(OpenContainer {
            kind: ContainerKind::Array { ended: 0 },
            in_value: false,
        });
    }

    pub(crate) fn open_object(&mut self) {
        let kind = ContainerKind::Object {
            first_key: self.keys.len(),
            seen: None,
        };
        self.open.push(OpenContainer {
            kind,
            in_value: false,
        });
    }

    /// Closes the innermost container, which ends a value of the one around it.
    pub(crate) fn close(&mut self) {
        if let Some(OpenContainer {
            kind: ContainerKind::Object { first_key, .. },
            ..
        }) = self.open.pop()
        {
            self.keys.truncate(first_key);
        }
        self.end_value();
    }

    /// Records that the next value of the innermost container starts.
    pub(crate) fn begin_value(&mut self) {
        if let Some(container) = self.open.last_mut() {
            container.in_value = true;
        }
    }

    pub(crate) fn end_value(&mut self) {
        if let Some(container) = self.open.last_mut() {
            container.in_value = false;
            if let ContainerKind::Array { ended } = &mut container.kind {
                *ended += 1;
            }
        }
    }

    /// Adds a key to the innermost object and starts its value; false for a duplicate.
    pub(crate) fn begin_member(&mut self, key: Cow<'i, str>) -> bool {
        let Some(OpenContainer {
            kind: ContainerKind::Object { first_key, seen },
            in_value,
        }) = self.open.last_mut()
        else {
            return true;
        };
        let earlier = self.keys.get(*first_key..).unwrap_or_default();
        let fresh = match seen {
            Some(seen) => seen.insert(key.clone()),
            None => !earlier.contains(&key),
        };
        if seen.is_none() && earlier.len() >= LINEAR_SEARCH_KEYS {
            *seen = Some(earlier.iter().cloned().chain([key.clone()]).collect());
        }
        self.keys.push(key);
        *in_value = true;
        fresh
    }

    /// The key most recently added.
    pub(crate) fn key(&self) -> &str {
        self.keys.last().map_or("", |key| key)
    }

    /// RFC 6901 pointer to the innermost value that has begun, or to one around it when that
    /// would be too long.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for (level, container) in self.open.iter().enumerate() {
            if !container.in_value {
                break;
            }
            let enclosing = pointer.len();
            match container.kind {
                ContainerKind::Array { ended } => {
                    // Writing to a String cannot fail.
                    let _ = write!(pointer, "/{ended}");
                }
                ContainerKind::Object { .. } => push_key(&mut pointer, self.key_at(level)),
            }
            if pointer.len() > MAX_POINTER_BYTES {
                pointer.truncate(enclosing);
                break;
            }
        }
        pointer
    }

    /// The latest key of the object at this level: the last one below the next object's first.
    fn key_at(&self, level: usize) -> &str {
        let inner = self
            .open
            .iter()
            .skip(level + 1)
            .find_map(|container| match container.kind {
                ContainerKind::Object { first_key, .. } => Some(first_key),
                ContainerKind::Array { .. } => None,
            });
        let end = inner.unwrap_or(self.keys.len());
        end.checked_sub(1)
            .and_then(|last| self.keys.get(last))
            .map_or("", |key| key)
    }
}

fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
        if pointer.len() > MAX_POINTER_BYTES {
            return;
        }
    }
}
