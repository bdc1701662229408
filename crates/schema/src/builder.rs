//! Building schemas at run time, by name.
//!
//! `#[derive(State)]`, the reader of recorded worlds and other languages all use this builder, so a
//! derived schema and one built by hand are the same and have the same fingerprint.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::error::{Fault, SchemaError};
use crate::step::gcd;
use crate::{
    Class, Contract, Derivative, Event, EventDelivery, Events, Field, Priority, Schema, Shape,
    State, Step,
};

/// A type that is a [`State`], or a tuple of up to 12 such types.
pub trait States {
    /// Adds the classes of all types to a schema, in order.
    fn add_to(builder: SchemaBuilder) -> SchemaBuilder;
}

impl<T: State> States for T {
    fn add_to(builder: SchemaBuilder) -> SchemaBuilder {
        builder.state::<T>()
    }
}

macro_rules! tuple_of_states {
    ($($state:ident)+) => {
        impl<$($state: State),+> States for ($($state,)+) {
            fn add_to(builder: SchemaBuilder) -> SchemaBuilder {
                builder$(.state::<$state>())+
            }
        }
    };
}

tuple_of_states!(A B);
tuple_of_states!(A B C);
tuple_of_states!(A B C D);
tuple_of_states!(A B C D E);
tuple_of_states!(A B C D E F);
tuple_of_states!(A B C D E F G);
tuple_of_states!(A B C D E F G H);
tuple_of_states!(A B C D E F G H I);
tuple_of_states!(A B C D E F G H I J);
tuple_of_states!(A B C D E F G H I J K);
tuple_of_states!(A B C D E F G H I J K L);

/// Collects classes and validates them together.
///
/// ```
/// use prescient_schema::{ClassBuilder, Field, FieldKind, Rate, SchemaBuilder, Step};
///
/// let step = Step::parse("0.01")?;
/// let mut car = ClassBuilder::new("car");
/// car.field(Field::new("x", FieldKind::Step { step, bits: 32 }))
///     .field(Field::new("speed", FieldKind::Step { step, bits: 32 }))
///     .field(Field::new("team", FieldKind::Enum { values: 2 }))
///     .rate("speed", "x", Rate::PerSecond { tick_hz: Step::parse("60")? })
///     .owner("team")
///     .position(["x"]);
/// let schema = SchemaBuilder::new().class(car.build()?).build()?;
/// assert_eq!(schema.classes[0].fields[1].derivative_of.unwrap().denominator, 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    classes: Vec<Class>,
    error: Option<SchemaError>,
}

impl Schema {
    /// The schema of one type, or of a tuple of types: `Schema::of::<(Tank, Turret)>()`.
    pub fn of<T: States>() -> Result<Self, SchemaError> {
        SchemaBuilder::new().states::<T>().build()
    }

    /// Adds an event type, or each type of a tuple. Both ends need the same ones in the same order:
    /// `Schema::of::<(Tank, Turret)>()?.with_events::<(Kill, Chat)>()?`.
    pub fn with_events<T: Events>(self) -> Result<Self, SchemaError> {
        let builder = SchemaBuilder {
            classes: self.classes,
            error: None,
        };
        builder.events::<T>().build()
    }
}

impl SchemaBuilder {
    /// A schema without classes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a class.
    pub fn class(mut self, class: Class) -> Self {
        self.classes.push(class);
        self
    }

    /// Adds one class for each table of a type.
    pub fn state<T: State>(mut self) -> Self {
        for table in T::TABLES {
            match T::class(table) {
                Ok(class) => self.classes.push(class),
                Err(error) => self.error = self.error.or(Some(error)),
            }
        }
        self
    }

    /// Adds the classes of one type, or of each type of a tuple.
    pub fn states<T: States>(self) -> Self {
        T::add_to(self)
    }

    /// Adds the classes of an event type: one of a struct, one per variant of an enumeration.
    pub fn event<T: Event>(mut self) -> Self {
        for variant in 0..T::CLASSES.len() {
            match T::class(variant) {
                Ok(class) => self.classes.push(class),
                Err(error) => self.error = self.error.or(Some(error)),
            }
        }
        self
    }

    /// Adds the classes of one event type, or of each type of a tuple.
    pub fn events<T: Events>(self) -> Self {
        T::add_to(self)
    }

    /// Validates the schema; returns the first error.
    pub fn build(self) -> Result<Schema, SchemaError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let schema = Schema {
            classes: self.classes,
        };
        schema.validate()?;
        Ok(schema)
    }
}

/// Collects the fields of a class and their roles.
///
/// A role names one field, or all fields that something was flattened to: `position` means
/// `position.x` and `position.y`, or `position[0]` and `position[1]`.
#[derive(Clone, Debug)]
pub struct ClassBuilder {
    class: Class,
    owner: Vec<String>,
    group: Vec<String>,
    keys: Vec<String>,
    position: Vec<String>,
    rates: Vec<(String, String, Rate)>,
    /// The fields that have a table of their own, and those that cannot have one.
    own_tables: &'static [&'static str],
    nested_tables: Vec<String>,
}

impl ClassBuilder {
    /// A class without fields.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            class: Class::new(name, Vec::new()),
            owner: Vec::new(),
            group: Vec::new(),
            keys: Vec::new(),
            position: Vec::new(),
            rates: Vec::new(),
            own_tables: &[],
            nested_tables: Vec::new(),
        }
    }

    /// Adds a field.
    pub fn field(&mut self, field: Field) -> &mut Self {
        self.class.fields.push(field);
        self
    }

    /// Declares the field that holds the entity's owner.
    pub fn owner(&mut self, name: impl Into<String>) -> &mut Self {
        self.owner.push(name.into());
        self
    }

    /// Declares the group: entities with the same value of this field travel in one packet.
    pub fn group(&mut self, name: impl Into<String>) -> &mut Self {
        self.group.push(name.into());
        self
    }

    /// Declares the field that holds the owner's input state.
    pub fn keys(&mut self, name: impl Into<String>) -> &mut Self {
        self.keys.push(name.into());
        self
    }

    /// Declares the fields that hold the entity's position.
    pub fn position<N: Into<String>>(&mut self, names: impl IntoIterator<Item = N>) -> &mut Self {
        self.position.extend(names.into_iter().map(Into::into));
        self
    }

    /// Declares that one field (or vector) is the rate of change of another.
    pub fn rate(
        &mut self,
        of: impl Into<String>,
        base: impl Into<String>,
        rate: Rate,
    ) -> &mut Self {
        self.rates.push((of.into(), base.into(), rate));
        self
    }

    /// Declares the degradation priority of entities of this class.
    pub fn priority(&mut self, priority: Priority) -> &mut Self {
        self.class.priority = priority;
        self
    }

    /// Declares the function that predicts a row from a past one.
    pub fn contract(&mut self, contract: Contract) -> &mut Self {
        self.class.contract = Some(contract);
        self
    }

    /// Declares the class an event: see [`Class::event`].
    pub fn event(&mut self, delivery: EventDelivery) -> &mut Self {
        self.class.event = Some(delivery);
        self
    }

    /// Declares the class an optional table: see [`Class::optional`].
    pub fn optional(&mut self) -> &mut Self {
        self.class.optional = true;
        self
    }

    /// Names the fields of the type that have a table of their own.
    #[doc(hidden)]
    pub fn own_tables(&mut self, names: &'static [&'static str]) {
        self.own_tables = names;
    }

    /// Refuses the class unless [`own_tables`](Self::own_tables) named the field: the field is
    /// inside another one, where it cannot have a table.
    #[doc(hidden)]
    pub fn check_own_table(&mut self, name: String) {
        if !self.own_tables.contains(&name.as_str()) {
            self.nested_tables.push(name);
        }
    }

    /// The fields, without roles; none if one of them cannot be inside a container.
    pub(crate) fn into_fields(self) -> Vec<Field> {
        if !self.nested_tables.is_empty() {
            return Vec::new();
        }
        self.class.fields
    }

    /// Whether a field has this name or was flattened from something of this name.
    pub fn has(&self, name: &str) -> bool {
        self.leaves(name).next().is_some()
    }

    /// Resolves all names and validates the class.
    pub fn build(&self) -> Result<Class, SchemaError> {
        if self.class.fields.len() > Class::MAX_FIELDS {
            return Err(SchemaError::class(&self.class.name, Fault::TooManyFields));
        }
        if let Some(name) = self.nested_tables.first() {
            let fault = Fault::NestedTable;
            return Err(SchemaError::field(&self.class.name, name, fault));
        }
        let mut class = self.class.clone();
        class.owner = self.single(&self.owner)?;
        class.group = self.single(&self.group)?;
        class.keys = self.single(&self.keys)?;
        for name in &self.position {
            let before = class.position.len();
            for index in self.leaves(name) {
                if matches!(self.shape(index), Shape::Number { .. }) {
                    class.position.push(index as u16);
                }
            }
            if class.position.len() == before {
                return Err(self.unknown(name));
            }
        }
        for (name, of, rate) in &self.rates {
            self.relate(&mut class.fields, name, of, *rate)?;
        }
        class.validate()?;
        Ok(class)
    }

    fn single(&self, names: &[String]) -> Result<Option<u16>, SchemaError> {
        let Some(name) = names.first() else {
            return Ok(None);
        };
        let fail = |fault| Err(SchemaError::field(&self.class.name, name, fault));
        if names.len() > 1 {
            return fail(Fault::DeclaredTwice);
        }
        let mut leaves = self.leaves(name);
        match (leaves.next(), leaves.next()) {
            (Some(index), None) => Ok(Some(index as u16)),
            (Some(_), Some(_)) => fail(Fault::SeveralFields),
            (None, _) => Err(self.unknown(name)),
        }
    }

    fn relate(
        &self,
        fields: &mut [Field],
        name: &str,
        of: &str,
        rate: Rate,
    ) -> Result<(), SchemaError> {
        let mut related = false;
        for index in self.leaves(name) {
            if !matches!(self.shape(index), Shape::Number { .. }) {
                continue;
            }
            let fail = |fault| {
                Err(SchemaError::field(
                    &self.class.name,
                    &fields[index].name,
                    fault,
                ))
            };
            // `velocity.x` belongs to `position.x`.
            let mut counterpart = of.to_string();
            counterpart.push_str(&fields[index].name[name.len()..]);
            let Some(base) = fields.iter().position(|field| field.name == counterpart) else {
                return fail(Fault::NoSuchField(counterpart));
            };
            if base == index {
                return fail(Fault::RateOfItself);
            }
            if fields[index].derivative_of.is_some() {
                return fail(Fault::DeclaredTwice);
            }
            match rate.between(&fields[index], &fields[base], base as u16) {
                Ok(derivative) => fields[index].derivative_of = Some(derivative),
                Err(fault) => return fail(fault),
            }
            related = true;
        }
        if related {
            Ok(())
        } else {
            Err(self.unknown(name))
        }
    }

    fn leaves<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_leaf = move |field: &Field| match field.name.strip_prefix(name) {
            Some(rest) => rest.is_empty() || rest.starts_with(['.', '[']),
            None => false,
        };
        let fields = self.class.fields.iter().enumerate();
        fields.filter_map(move |(index, field)| is_leaf(field).then_some(index))
    }

    fn shape(&self, index: usize) -> Shape {
        self.class.fields[index].kind.shape()
    }

    fn unknown(&self, name: &str) -> SchemaError {
        SchemaError::class(&self.class.name, Fault::NoSuchField(name.into()))
    }
}

/// The unit of time of a rate of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rate {
    /// Units of the other field per tick.
    PerTick,
    /// Units of the other field per second.
    PerSecond {
        /// Ticks per second.
        tick_hz: Step,
    },
}

impl Rate {
    /// The exact ratio between one unit of `rate` and one unit of `base` per tick.
    fn between(self, rate: &Field, base: &Field, of: u16) -> Result<Derivative, Fault> {
        let (Some(unit), Some(per)) = (rate.kind.unit(), base.kind.unit()) else {
            return Err(Fault::RateWithoutUnits);
        };
        let hz = match self {
            Rate::PerTick => Step::ONE,
            Rate::PerSecond { tick_hz } => tick_hz,
        };
        let product = |factors: [u64; 3]| {
            factors
                .iter()
                .try_fold(1u128, |product, factor| {
                    product.checked_mul(u128::from(*factor))
                })
                .ok_or(Fault::RateOutOfRange)
        };
        let numerator = product([unit.numerator(), per.denominator(), hz.denominator()])?;
        let denominator = product([unit.denominator(), per.numerator(), hz.numerator()])?;
        let divisor = gcd(numerator, denominator);
        Ok(Derivative {
            of,
            numerator: i32::try_from(numerator / divisor).map_err(|_| Fault::RateOutOfRange)?,
            denominator: u32::try_from(denominator / divisor).map_err(|_| Fault::RateOutOfRange)?,
        })
    }
}
