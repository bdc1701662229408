//! Random changes of the world: entities spawn, despawn, change owner, change values and
//! references.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient::schema::FieldKind;
use prescient_replication::{PeerId, WorldError, WorldStep};

use super::super::dice::mix;
use super::super::values::{self, Style};
use super::{Key, NEIGHBOUR, State, Truth};

impl Truth {
    pub(super) fn come(
        &mut self,
        hidden: bool,
        step: &mut WorldStep<'_>,
    ) -> Result<(), WorldError> {
        let there = self.keys(hidden).len();
        let count = match self.dice.below(40) {
            0 => self.size,
            1..12 => 1,
            _ => 0,
        };
        for _ in 0..count.min(self.size.saturating_sub(there)) {
            let of = self.dice.below(self.types.len());
            let key = self.next[usize::from(hidden)];
            self.next[usize::from(hidden)] += 1;
            let owner = match (hidden, self.dice.below(self.peers as usize + 1) as u64) {
                (true, _) => Some(NEIGHBOUR),
                // Visible entities are never owned by the neighbour.
                (false, 0) => None,
                (false, peer) => Some(PeerId(peer)),
            };
            let mut rows: Vec<Vec<i64>> = Vec::new();
            for class in &self.types[of].tables {
                let position = |at: usize| class.position.contains(&(at as u16));
                let fields = class.fields.iter().enumerate();
                let row = fields.map(|(at, field)| {
                    values::any(field, position(at), &mut self.dice, &mut self.content_store)
                });
                rows.push(row.collect());
            }
            rows[0][self.types[of].key] = i64::from(key);
            let state = State { of, rows, owner };
            self.now.insert(key, Arc::new(state));
            self.refer(key, true);
            self.styles.insert(key, Style::Rest);
            self.spawn(key, step)?;
        }
        Ok(())
    }

    pub(super) fn go(&mut self, hidden: bool, step: &mut WorldStep<'_>) -> Result<(), WorldError> {
        let count = match self.dice.below(60) {
            0 => self.size / 2,
            1..8 => 1,
            _ => 0,
        };
        for _ in 0..count {
            let Some(key) = self.any(hidden) else {
                break;
            };
            self.now.remove(&key);
            self.styles.remove(&key);
            if self.is_told(key) {
                step.despawn(self.entities[&key])?;
            }
        }
        Ok(())
    }

    pub(super) fn change_hands(
        &mut self,
        hidden: bool,
        step: &mut WorldStep<'_>,
    ) -> Result<(), WorldError> {
        let peer = self.dice.below(self.peers as usize + 1) as u64;
        if hidden || !self.dice.of_thousand(100) {
            return Ok(());
        }
        let Some(key) = self.any(hidden) else {
            return Ok(());
        };
        let owner = (peer > 0).then_some(PeerId(peer));
        if let Some(state) = self.now.get_mut(&key) {
            Arc::make_mut(state).owner = owner;
        }
        step.set_owner(self.entities[&key], owner)
    }

    /// Changes all entities by their style.
    pub(super) fn live(&mut self, step: &mut WorldStep<'_>) -> Result<(), WorldError> {
        let keys: Vec<Key> = self.now.keys().copied().collect();
        for key in keys {
            if self.dice.of_thousand(30) {
                let styles = [Style::Rest, Style::Steady, Style::Restless, Style::Wild];
                self.styles.insert(key, styles[self.dice.below(4)]);
            }
            let style = self.styles[&key];
            let refers = self.dice.of_thousand(40);
            if style == Style::Rest && !refers {
                continue;
            }
            let (mut dice, mut content_store) =
                (self.dice.clone(), std::mem::take(&mut self.content_store));
            let types = &self.types[self.now[&key].of];
            let positions: Vec<_> = types
                .tables
                .iter()
                .map(|one| one.position.clone())
                .collect();
            let which = types.key;
            let seed = mix(self.seed, u64::from(key));
            self.edit(key, |(table, column), field, cell| {
                if (table, column) == (0, which) || field.only_on_spawn {
                    return cell;
                }
                let speed = mix(seed, (table << 16 | column) as u64) % 15;
                let near = positions[table].contains(&(column as u16));
                let how = (style, speed as i64 - 7, near);
                values::next(field, cell, how, &mut dice, &mut content_store)
            });
            (self.dice, self.content_store) = (dice, content_store);
            if refers {
                self.refer(key, false);
            }
            self.tell(key, step)?;
        }
        Ok(())
    }

    /// Sets random references of an entity, some of them to hidden entities.
    fn refer(&mut self, key: Key, is_new: bool) {
        let visible = self.keys(false);
        let hidden = self.keys(true);
        let mut dice = self.dice.clone();
        let names: Vec<String> = self.types.iter().map(|one| one.name.clone()).collect();
        let kinds: BTreeMap<Key, usize> = self.now.iter().map(|(&k, one)| (k, one.of)).collect();
        self.edit(key, |_, field, cell| {
            let FieldKind::Reference { class } = &field.kind else {
                return cell;
            };
            if field.only_on_spawn && !is_new {
                return cell;
            }
            let among = match dice.below(4) {
                0 => &hidden,
                _ => &visible,
            };
            let to = dice.pick(among).copied().unwrap_or(0);
            let fits = |to: &Key| {
                let name = kinds.get(to).map(|&of| &names[of]);
                *to != key && (class.is_none() || class.as_ref() == name)
            };
            i64::from(Some(to).filter(fits).unwrap_or(0))
        });
        self.dice = dice;
    }
}
