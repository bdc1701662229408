//! A program's own things, kept in step with what a client shows.

use std::collections::BTreeMap;

use prescient_schema::State;

use crate::client::{Change, Client, Object};

/// Makes a program's own thing for every object of a type: a sprite, a sound, an entity of an
/// engine.
pub trait Factory {
    /// What objects are.
    type State: State;
    /// What the program has for each.
    type View;

    /// An object appeared.
    fn create(&mut self, object: Object, state: Self::State) -> Self::View;

    /// An object changed.
    fn update(&mut self, view: &mut Self::View, state: Self::State);

    /// An object left.
    fn remove(&mut self, view: Self::View) {
        drop(view);
    }
}

/// What a [`Factory`] made, by object.
///
/// ```
/// # use prescient_replication::*;
/// # use prescient_schema::State;
/// # #[derive(State)]
/// # struct Car { #[state(step = 0.1)] speed: f32 }
/// struct Sounds;
///
/// impl Factory for Sounds {
///     type State = Car;
///     type View = f32;
///
///     fn create(&mut self, _: Object, car: Car) -> f32 {
///         car.speed
///     }
///
///     fn update(&mut self, pitch: &mut f32, car: Car) {
///         *pitch = car.speed;
///     }
/// }
///
/// fn listen(client: &mut Client, sounds: &mut Views<Sounds>) {
///     while let Some(change) = client.poll_change() {
///         sounds.follow(&change, client);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Views<F: Factory> {
    factory: F,
    views: BTreeMap<Object, F::View>,
}

impl<F: Factory> Views<F> {
    /// None yet.
    pub fn new(factory: F) -> Self {
        Self {
            factory,
            views: BTreeMap::new(),
        }
    }

    /// Does what a change asks for; what is about objects of other types is passed over.
    pub fn follow(&mut self, change: &Change, client: &Client) {
        match *change {
            Change::Created(object) | Change::Updated(object) => {
                let Some(state) = client.get(object) else {
                    return;
                };
                match self.views.get_mut(&object) {
                    Some(view) => self.factory.update(view, state),
                    None => {
                        let view = self.factory.create(object, state);
                        self.views.insert(object, view);
                    }
                }
            }
            Change::Removed(object) => {
                if let Some(view) = self.views.remove(&object) {
                    self.factory.remove(view);
                }
            }
            Change::Entered | Change::Charged { .. } | Change::Event { .. } => {}
        }
    }

    /// What was made for an object.
    pub fn get(&self, object: Object) -> Option<&F::View> {
        self.views.get(&object)
    }

    /// What was made for an object.
    pub fn get_mut(&mut self, object: Object) -> Option<&mut F::View> {
        self.views.get_mut(&object)
    }

    /// Everything, in the order of the objects' numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Object, &F::View)> {
        self.views.iter().map(|(&object, view)| (object, view))
    }

    /// What makes them.
    pub fn factory(&mut self) -> &mut F {
        &mut self.factory
    }
}
