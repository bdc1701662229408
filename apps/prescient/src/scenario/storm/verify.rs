//! Compares a client's view with the server's state at the tick it is shown as of.

use std::collections::BTreeMap;

use prescient::schema::{EntityRef, Level, Shape};
use prescient_replication::{Client, EntityHandle, PeerId, Tick};

use super::policy::View;
use super::promise::Promise;
use super::truth::{Key, State, Truth};
use super::verdict::{Fault, Verdict};

/// The truth that a client's view is compared with.
pub(super) struct Witness<'a> {
    pub truth: &'a Truth,
    pub promise: &'a Promise,
    pub peer: PeerId,
    /// Nothing has changed for a while, so no entity may be shown more precisely than its level.
    pub settled: bool,
}

impl Witness<'_> {
    /// Compares all visible entities.
    pub(super) fn compare(&self, client: &Client, verdict: &mut Verdict) {
        let Some(tick) = client.tick() else {
            return;
        };
        let mut shown = BTreeMap::new();
        for entity in client.entities() {
            match self.key_of(client, entity) {
                // An entity may become visible again before its earlier removal is complete.
                Some(key) if shown.insert(key, entity).is_some() && self.is_complete(client) => {
                    self.complain(verdict, tick, entity, || {
                        format!("entity {key} is visible twice")
                    });
                }
                Some(key) => self.compare_entity(client, entity, key, verdict),
                None => self.complain(verdict, tick, entity, || {
                    format!("{:?} is of no type", client.type_name(entity))
                }),
            }
        }
        if self.is_complete(client) {
            self.compare_views(client, tick, &shown, verdict);
        }
    }

    /// Whether all visible entities are shown as of the same tick.
    fn is_complete(&self, client: &Client) -> bool {
        client.complete_tick() == client.tick()
    }

    /// The key of an entity.
    pub(super) fn key_of(&self, client: &Client, entity: EntityHandle) -> Option<Key> {
        key_in(
            self.truth,
            client.type_name(entity)?,
            client.row(entity, 0)?,
        )
    }

    /// If the view is complete, it must contain all visible entities and no others.
    fn compare_views(
        &self,
        client: &Client,
        tick: Tick,
        shown: &BTreeMap<Key, EntityHandle>,
        verdict: &mut Verdict,
    ) {
        let Some(views) = self.promise.views_by_tick.get(&tick) else {
            return;
        };
        for key in views.keys().filter(|key| !shown.contains_key(key)) {
            verdict.note(Fault::Divergence, || {
                format!("{:?}, {tick:?}: entity {key} is missing", self.peer)
            });
        }
        for (&key, &entity) in shown {
            let Some(view) = views.get(&key) else {
                self.complain(verdict, tick, entity, || {
                    format!("entity {key} is still visible")
                });
                continue;
            };
            let tables = self.tables(tick, key);
            for table in (1..tables).filter(|table| view.tables >> table & 1 == 1) {
                if client.row(entity, table).is_none() {
                    self.complain(verdict, tick, entity, || {
                        format!("table {table} of entity {key} is missing")
                    });
                }
            }
        }
    }

    fn tables(&self, tick: Tick, key: Key) -> usize {
        let state = self.truth.past.get(&tick).and_then(|then| then.get(&key));
        state.map_or(0, |state| state.rows.len())
    }

    fn compare_entity(
        &self,
        client: &Client,
        entity: EntityHandle,
        key: Key,
        verdict: &mut Verdict,
    ) {
        for table in 0..3 {
            let (Some(row), Some(tick)) =
                (client.row(entity, table), client.tick_of(entity, table))
            else {
                continue;
            };
            let then = self.truth.past.get(&tick);
            let Some(state) = then.and_then(|then| then.get(&key)) else {
                self.complain(verdict, tick, entity, || {
                    format!("entity {key} did not exist, but is shown as {row:?}")
                });
                continue;
            };
            let views = self.promise.views_by_tick.get(&tick);
            match views.and_then(|views| views.get(&key)) {
                Some(view) if table == 0 || view.tables >> table & 1 == 1 => {
                    self.compare_row(client, (entity, key, table), (tick, state, view), verdict);
                }
                _ => verdict.note(Fault::Leak, || {
                    let peer = self.peer;
                    format!(
                        "{peer:?}, {tick:?}: table {table} of entity {key} is not visible to it"
                    )
                }),
            }
        }
    }

    fn compare_row(
        &self,
        client: &Client,
        (entity, key, table): (EntityHandle, Key, usize),
        (tick, state, view): (Tick, &State, &View),
        verdict: &mut Verdict,
    ) {
        let row = client.row(entity, table).unwrap_or_default();
        let class = &self.truth.types[state.of].tables[table];
        let wrong = |level: Level| {
            let fields = class.fields.iter().enumerate();
            let mut columns = fields.zip(row.iter().zip(&state.rows[table]));
            columns.find_map(|((at, field), (&shown, &was))| {
                let is_right = match field.kind.shape() {
                    Shape::Reference => {
                        let loose = field.only_on_spawn;
                        return self
                            .wrong_reference(client, tick, shown, was as Key, loose)
                            .map(|got| (at, was, got));
                    }
                    Shape::Content => {
                        shown == was && client.content(shown) == self.truth.content_store.get(&was)
                    }
                    _ => shown == field.at_level(level, was),
                };
                (!is_right).then(|| (at, field.at_level(level, was), shown))
            })
        };
        let Some(first) = wrong(view.level) else {
            return;
        };
        // A spawn is sent exactly, whatever the level afterwards.
        let exact = if self.settled {
            Some(first)
        } else {
            wrong(Level::EXACT)
        };
        let Some(exact) = exact else {
            return;
        };
        // Reports the level whose first difference is in a later column: it is likelier to be the
        // actual one.
        let (at, was, shown) = first.max(exact);
        self.complain(verdict, tick, entity, || {
            let (class, field) = (&class.name, &class.fields[at].name);
            format!("entity {key}, class {class}, field {field}: expected {was}, shown {shown}")
        });
    }

    /// The entity that a reference wrongly refers to, or `-1` if it wrongly refers to none.
    fn wrong_reference(
        &self,
        client: &Client,
        tick: Tick,
        shown: i64,
        was: Key,
        loose: bool,
    ) -> Option<i64> {
        let to = EntityRef::from_cell(shown).and_then(|to| client.resolve(to));
        match to {
            Some(to) => {
                let to = self.key_of(client, to);
                (to != Some(was)).then(|| to.map_or(-2, i64::from))
            }
            None => {
                let then = self.truth.past.get(&tick);
                let views = self.promise.views_by_tick.get(&tick);
                let is_due = then.is_some_and(|then| then.contains_key(&was))
                    && views.is_some_and(|views| views.contains_key(&was))
                    && self.is_complete(client)
                    && client.tick() == Some(tick)
                    && !loose;
                is_due.then_some(-1)
            }
        }
    }

    fn complain(
        &self,
        verdict: &mut Verdict,
        tick: Tick,
        entity: EntityHandle,
        story: impl FnOnce() -> String,
    ) {
        verdict.note(Fault::Divergence, || {
            format!("{:?}, {tick:?}, {entity:?}: {}", self.peer, story())
        });
    }
}

/// The key in the first row of an entity of the type with this name.
pub(super) fn key_in(truth: &Truth, type_name: &str, row: &[i64]) -> Option<Key> {
    let of = truth.types.iter().find(|one| one.name == type_name)?;
    Key::try_from(*row.get(of.key)?).ok()
}
