//! Parses `#[state(…)]` and `#[event(…)]`, and rejects invalid combinations.

use proc_macro2::{Ident, Span};
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitInt, LitStr, Path, Result, Type, UnOp};

/// A declared value and its span.
pub(crate) struct At<T> {
    pub value: T,
    pub span: Span,
}

/// The attributes of a struct.
#[derive(Default)]
pub(crate) struct StructAttributes {
    pub rename: Option<At<String>>,
    pub tick_hz: Option<At<String>>,
    pub priority: Option<At<u8>>,
    pub tables: Option<At<Vec<Ident>>>,
    pub predict_with: Option<At<Path>>,
    pub owner: Option<At<String>>,
    pub group: Option<At<String>>,
    pub position: Option<At<String>>,
}

impl StructAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, |meta, name| match name {
            "rename" => set(&mut found.rename, &meta, string(&meta)?),
            "tick_hz" => set(&mut found.tick_hz, &meta, positive(&meta)?),
            "priority" => set(&mut found.priority, &meta, priority(&meta)?),
            "tables" => set(&mut found.tables, &meta, names(&meta)?),
            "predict_with" => set(&mut found.predict_with, &meta, meta.value()?.parse()?),
            "owner" => set(&mut found.owner, &meta, string(&meta)?),
            "group" => set(&mut found.group, &meta, string(&meta)?),
            "position" => set(&mut found.position, &meta, string(&meta)?),
            _ => Err(meta.error(
                "unknown attribute of a struct; there are `rename`, `tick_hz`, `priority`, \
                     `tables`, `predict_with`, `owner`, `group`, `position`",
            )),
        })?;
        Ok(found)
    }
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub rename: Option<At<String>>,
    pub skip: Option<At<()>>,
    pub step: Option<At<String>>,
    pub exact: Option<At<()>>,
    pub float: Option<At<Vec<Format>>>,
    pub bits: Option<At<u8>>,
    pub levels: Option<At<[u8; 4]>>,
    pub max_len: Option<At<u32>>,
    pub bytes: Option<At<()>>,
    pub priority: Option<At<u8>>,
    pub only_on_spawn: Option<At<()>>,
    pub optional: Option<At<()>>,
    pub saturate: Option<At<()>>,
    pub velocity_of: Option<At<String>>,
    pub per_tick: Option<At<()>>,
    pub per_second: Option<At<()>>,
    pub owner: Option<At<()>>,
    pub group: Option<At<()>>,
    pub keys: Option<At<()>>,
    pub position: Option<At<()>>,
    pub tables: Option<At<Vec<Ident>>>,
    pub table: Option<At<()>>,
}

/// Mantissa, exponent and bias.
pub(crate) type Format = (u8, u8, i16);

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, |meta, name| match name {
            "rename" => set(&mut found.rename, &meta, string(&meta)?),
            "skip" => set(&mut found.skip, &meta, ()),
            "step" => set(&mut found.step, &meta, positive(&meta)?),
            "exact" => set(&mut found.exact, &meta, ()),
            "float" => set(&mut found.float, &meta, formats(&meta)?),
            "bits" => set(&mut found.bits, &meta, bits(&meta)?),
            "levels" => set(&mut found.levels, &meta, levels(&meta)?),
            "max_len" => set(&mut found.max_len, &meta, length(&meta)?),
            "bytes" => set(&mut found.bytes, &meta, ()),
            "priority" => set(&mut found.priority, &meta, priority(&meta)?),
            "only_on_spawn" => set(&mut found.only_on_spawn, &meta, ()),
            "optional" => set(&mut found.optional, &meta, ()),
            "saturate" => set(&mut found.saturate, &meta, ()),
            "velocity_of" => set(&mut found.velocity_of, &meta, string(&meta)?),
            "per_tick" => set(&mut found.per_tick, &meta, ()),
            "per_second" => set(&mut found.per_second, &meta, ()),
            "owner" => set(&mut found.owner, &meta, ()),
            "group" => set(&mut found.group, &meta, ()),
            "keys" => set(&mut found.keys, &meta, ()),
            "position" => set(&mut found.position, &meta, ()),
            "tables" => set(&mut found.tables, &meta, names(&meta)?),
            "table" => set(&mut found.table, &meta, ()),
            _ => Err(meta.error(
                "unknown attribute of a field; there are `step`, `exact`, `float`, `bits`, \
                     `levels`, `max_len`, `bytes`, `priority`, `only_on_spawn`, `optional`, \
                     `saturate`, `velocity_of`, `per_tick`, `per_second`, `owner`, `group`, \
                     `keys`, `position`, `tables`, `table`, `rename`, `skip`",
            )),
        })?;
        found.check()?;
        Ok(found)
    }

    /// Rejects contradicting attributes.
    fn check(&self) -> Result<()> {
        let refuse = |span, text: &str| Err(Error::new(span, text));
        if let Some(skip) = &self.skip
            && self.declares_anything()
        {
            return refuse(
                skip.span,
                "a skipped field is not replicated: nothing else applies",
            );
        }
        let forms = [
            self.step.as_ref().map(|at| at.span),
            self.float.as_ref().map(|at| at.span),
            self.exact.as_ref().map(|at| at.span),
        ];
        if let Some(second) = forms.iter().flatten().nth(1) {
            return refuse(*second, "only one of `step`, `float` and `exact` can hold");
        }
        if let (Some(levels), Some(At { value: 0, .. })) = (&self.levels, &self.priority) {
            return refuse(
                levels.span,
                "priority 0 is never degraded, so it has no levels",
            );
        }
        if let (Some(float), Some(At { value: 0, .. })) = (&self.float, &self.priority)
            && float.value.len() > 1
        {
            return refuse(float.span, "priority 0 is never degraded: give one format");
        }
        if self.exact.is_some() || self.float.is_some() {
            let text = "only integers and stepped floats have this";
            let levels = self.levels.as_ref().map(|at| at.span);
            let bits = self.bits.as_ref().map(|at| at.span);
            let velocity = self.velocity_of.as_ref().map(|at| at.span);
            if let Some(span) = levels.or(bits).or(velocity) {
                return refuse(span, text);
            }
        }
        if let (Some(keys), Some(_)) = (&self.keys, &self.only_on_spawn) {
            return refuse(keys.span, "keys change, so they cannot be `only_on_spawn`");
        }
        if let Some(table) = &self.table {
            let roles = [&self.owner, &self.group, &self.keys, &self.position];
            if roles.into_iter().any(Option::is_some)
                || self.tables.is_some()
                || self.velocity_of.is_some()
            {
                return refuse(
                    table.span,
                    "a field in a table of its own has no role and is in no other table",
                );
            }
        }
        if let Some(unit) = self.per_tick.as_ref().or(self.per_second.as_ref())
            && self.velocity_of.is_none()
        {
            return refuse(unit.span, "this belongs to `velocity_of`");
        }
        if let (Some(_), Some(second)) = (&self.per_tick, &self.per_second) {
            return refuse(
                second.span,
                "a velocity is either `per_tick` or `per_second`",
            );
        }
        Ok(())
    }

    /// The first attribute that only concerns the state of entities.
    pub(crate) fn of_entities(&self) -> Option<Span> {
        let marks = [
            &self.only_on_spawn,
            &self.optional,
            &self.per_tick,
            &self.per_second,
            &self.owner,
            &self.group,
            &self.keys,
            &self.position,
            &self.table,
        ];
        let marks = marks.into_iter().flatten().map(|at| at.span);
        let priority = self.priority.as_ref().map(|at| at.span);
        let levels = self.levels.as_ref().map(|at| at.span);
        let velocity = self.velocity_of.as_ref().map(|at| at.span);
        let tables = self.tables.as_ref().map(|at| at.span);
        marks
            .chain(priority)
            .chain(levels)
            .chain(velocity)
            .chain(tables)
            .next()
    }

    fn declares_anything(&self) -> bool {
        let marks = [
            &self.exact,
            &self.bytes,
            &self.only_on_spawn,
            &self.optional,
            &self.saturate,
            &self.per_tick,
            &self.per_second,
            &self.owner,
            &self.group,
            &self.keys,
            &self.position,
            &self.table,
        ];
        marks.into_iter().any(Option::is_some)
            || self.rename.is_some()
            || self.step.is_some()
            || self.float.is_some()
            || self.bits.is_some()
            || self.levels.is_some()
            || self.max_len.is_some()
            || self.priority.is_some()
            || self.velocity_of.is_some()
            || self.tables.is_some()
    }
}

/// The attributes of an event, or of a variant.
#[derive(Default)]
pub(crate) struct EventAttributes {
    pub rename: Option<At<String>>,
    pub answer: Option<At<Type>>,
    delivery: Option<At<Ident>>,
}

impl EventAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, |meta, name| {
            let delivery = match name {
                "rename" => return set(&mut found.rename, &meta, string(&meta)?),
                "answer" => return set(&mut found.answer, &meta, meta.value()?.parse()?),
                "ordered" => "Ordered",
                "unordered" => "Unordered",
                "unreliable" => "Unreliable",
                "sequenced" => "Sequenced",
                _ => {
                    return Err(meta.error(
                        "unknown attribute of an event; there are `ordered`, `unordered`, \
                         `unreliable`, `sequenced`, `answer`, `rename`",
                    ));
                }
            };
            if found.delivery.is_some() {
                return Err(meta.error("an event is delivered in one way"));
            }
            let delivery = Ident::new(delivery, meta.path.span());
            set(&mut found.delivery, &meta, delivery)
        })?;
        if let (Some(_), Some(delivery)) = (&found.answer, &found.delivery) {
            let text = "requests and answers are always reliable and ordered";
            return Err(Error::new(delivery.span, text));
        }
        Ok(found)
    }

    /// These, or else those of the whole enumeration.
    pub(crate) fn or(self, whole: &Self) -> Self {
        let whole = || {
            let At { value, span } = whole.delivery.as_ref()?;
            let (value, span) = (value.clone(), *span);
            Some(At { value, span })
        };
        Self {
            delivery: self.delivery.or_else(whole),
            ..self
        }
    }

    /// The name of the delivery; ordered by default.
    pub(crate) fn delivery(&self) -> Ident {
        let ordered = || Ident::new("Ordered", Span::call_site());
        let delivery = self.delivery.as_ref();
        delivery.map_or_else(ordered, |delivery| delivery.value.clone())
    }
}

/// Rejects all attributes.
pub(crate) fn refuse_all(attributes: &[Attribute], why: &str) -> Result<()> {
    each(attributes, |meta, _| Err(meta.error(why)))
}

fn each(
    attributes: &[Attribute],
    mut read: impl FnMut(ParseNestedMeta<'_>, &str) -> Result<()>,
) -> Result<()> {
    for attribute in attributes {
        // Each derive declares only its own.
        if attribute.path().is_ident("state") || attribute.path().is_ident("event") {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string);
                read(meta, name.as_deref().unwrap_or_default())
            })?;
        }
    }
    Ok(())
}

fn set<T>(slot: &mut Option<At<T>>, meta: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error("declared twice"));
    }
    let span = meta.path.span();
    *slot = Some(At { value, span });
    Ok(())
}

fn string(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let literal: LitStr = meta.value()?.parse()?;
    if literal.value().is_empty() {
        return Err(Error::new(literal.span(), "a name cannot be empty"));
    }
    Ok(literal.value())
}

/// The text of a positive number; its exact value is computed by the schema.
fn positive(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let number: Expr = meta.value()?.parse()?;
    let text = match &number {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Int(literal) => literal.base10_digits().to_owned(),
            Lit::Float(literal) => literal.base10_digits().to_owned(),
            Lit::Str(literal) => literal.value(),
            _ => return Err(Error::new_spanned(number, "a number is needed here")),
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            return Err(Error::new_spanned(number, "this must be greater than zero"));
        }
        _ => {
            return Err(Error::new_spanned(
                number,
                "a literal number is needed here",
            ));
        }
    };
    let is_positive = |text: &str| text.trim().parse::<f64>().map(|value| value > 0.0);
    let parts: Vec<_> = text.split('/').map(is_positive).collect();
    match parts.as_slice() {
        [Ok(true)] | [Ok(true), Ok(true)] => Ok(text),
        _ if parts.contains(&Ok(false)) => {
            Err(Error::new_spanned(number, "this must be greater than zero"))
        }
        _ => Err(Error::new_spanned(
            number,
            "a decimal such as 0.01 or a ratio such as \"1/60\" is needed here",
        )),
    }
}

fn priority(meta: &ParseNestedMeta<'_>) -> Result<u8> {
    let literal: LitInt = meta.value()?.parse()?;
    match literal.base10_parse() {
        Ok(value @ 0..=3) => Ok(value),
        _ => Err(Error::new(
            literal.span(),
            "a priority is 0 (never degraded) to 3 (first)",
        )),
    }
}

fn bits(meta: &ParseNestedMeta<'_>) -> Result<u8> {
    let literal: LitInt = meta.value()?.parse()?;
    match literal.base10_parse() {
        Ok(value @ 1..=64) => Ok(value),
        _ => Err(Error::new(literal.span(), "a width is 1 to 64 bits")),
    }
}

fn length(meta: &ParseNestedMeta<'_>) -> Result<u32> {
    let literal: LitInt = meta.value()?.parse()?;
    match literal.base10_parse() {
        Ok(value @ 1..=65536) => Ok(value),
        _ => Err(Error::new(literal.span(), "a length is 1 to 65536 items")),
    }
}

fn names(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    let list: Vec<Ident> = in_parentheses(meta.input)?;
    for (index, name) in list.iter().enumerate() {
        if list[..index].contains(name) {
            return Err(Error::new(name.span(), "named twice"));
        }
    }
    if list.is_empty() {
        return Err(meta.error("name at least one table"));
    }
    Ok(list)
}

fn levels(meta: &ParseNestedMeta<'_>) -> Result<[u8; 4]> {
    let list: Vec<LitInt> = in_parentheses(meta.input)?;
    let values = list.iter().map(|literal| literal.base10_parse::<u8>());
    let values: Vec<u8> = values.collect::<Result<_>>()?;
    match <[u8; 4]>::try_from(values) {
        Ok(levels) if levels[0] == 0 && levels.is_sorted() && levels[3] < 64 => Ok(levels),
        _ => Err(meta.error(
            "levels are four numbers of bits to round away, the first 0, none less than the one \
             before, such as `levels(0, 1, 2, 3)`",
        )),
    }
}

fn formats(meta: &ParseNestedMeta<'_>) -> Result<Vec<Format>> {
    let tuples: Vec<Tuple> = in_parentheses(meta.input)?;
    if tuples.len() != 1 && tuples.len() != 4 {
        return Err(meta.error("give one format, or four, as `(mantissa, exponent, bias)`"));
    }
    Ok(tuples.into_iter().map(|tuple| tuple.0).collect())
}

struct Tuple(Format);

impl Parse for Tuple {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let span = input.span();
        let numbers: Vec<Expr> = in_parentheses(input)?;
        let numbers: Vec<i16> = numbers.iter().map(integer).collect::<Result<_>>()?;
        match numbers.as_slice() {
            [mantissa @ 1..=52, exponent @ 1..=11, bias] => {
                Ok(Self((*mantissa as u8, *exponent as u8, *bias)))
            }
            [_, _, _] => Err(Error::new(
                span,
                "a float has 1 to 52 bits of mantissa and 1 to 11 of exponent",
            )),
            _ => Err(Error::new(span, "a format is `(mantissa, exponent, bias)`")),
        }
    }
}

fn integer(number: &Expr) -> Result<i16> {
    match number {
        Expr::Lit(ExprLit {
            lit: Lit::Int(literal),
            ..
        }) => literal.base10_parse(),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => Ok(-integer(&unary.expr)?),
        _ => Err(Error::new_spanned(
            number,
            "a literal integer is needed here",
        )),
    }
}

fn in_parentheses<T: Parse>(input: ParseStream<'_>) -> Result<Vec<T>> {
    let content;
    syn::parenthesized!(content in input);
    let items = content.parse_terminated(T::parse, syn::Token![,])?;
    Ok(items.into_iter().collect())
}
