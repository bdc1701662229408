//! One field: its declaration as a constant, and the tables that have it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Fields, Member, Result, Type};

use crate::attributes::{At, FieldAttributes};

/// One field that is not skipped.
pub(crate) struct Column<'a> {
    pub member: Member,
    pub name: String,
    pub kind: &'a Type,
    pub attributes: FieldAttributes,
    /// The constant that holds its declaration.
    pub constant: Ident,
}

/// The tables of a type, as far as they decide where its fields are.
pub(crate) struct Tables {
    /// All declared tables but the first, which has the fields that name none. Where the type is a
    /// part of another one, so have the other's tables.
    pub further: Vec<String>,
    /// The tables of single fields.
    pub own: Vec<String>,
}

/// The fields of a struct or variant, and those that are skipped.
pub(crate) fn columns(fields: &Fields) -> Result<(Vec<Column<'_>>, Vec<Member>)> {
    let (mut columns, mut skipped) = (Vec::new(), Vec::new());
    for (index, (member, field)) in fields.members().zip(fields).enumerate() {
        let attributes = FieldAttributes::parse(&field.attrs)?;
        if attributes.skip.is_some() {
            skipped.push(member);
            continue;
        }
        let own = match &member {
            Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let name = attributes
            .rename
            .as_ref()
            .map_or(own, |rename| rename.value.clone());
        if columns
            .iter()
            .any(|column: &Column<'_>| column.name == name)
        {
            let span = attributes
                .rename
                .as_ref()
                .map_or_else(Span::call_site, |at| at.span);
            return Err(Error::new(span, format!("there is another field `{name}`")));
        }
        columns.push(Column {
            member,
            name,
            kind: &field.ty,
            attributes,
            constant: Ident::new(&format!("FIELD_{index}"), Span::call_site()),
        });
    }
    Ok((columns, skipped))
}

impl Column<'_> {
    /// The declaration's constant.
    pub(crate) fn declaration(&self, schema: &TokenStream) -> TokenStream {
        let Self {
            attributes,
            constant,
            ..
        } = self;
        let form = match (&attributes.step, &attributes.float) {
            (Some(at), _) => {
                let step = step(schema, at);
                quote!(#schema::Form::Step(#step))
            }
            (_, Some(at)) => float(schema, at),
            _ => quote!(#schema::Form::Natural),
        };
        let some = |value: Option<TokenStream>| match value {
            Some(value) => quote!(::core::option::Option::Some(#value)),
            None => quote!(::core::option::Option::None),
        };
        let bits = some(attributes.bits.as_ref().map(|at| {
            let bits = at.value;
            quote!(#bits)
        }));
        let priority = some(
            attributes
                .priority
                .as_ref()
                .map(|at| priority(schema, at.value)),
        );
        let levels = some(attributes.levels.as_ref().map(|at| {
            let levels = at.value;
            quote!([#(#levels),*])
        }));
        let max_len = some(attributes.max_len.as_ref().map(|at| {
            let max_len = at.value;
            quote!(#max_len)
        }));
        let bytes = attributes.bytes.is_some();
        let only_on_spawn = attributes.only_on_spawn.is_some();
        let optional = attributes.optional.is_some();
        let saturate = attributes.saturate.is_some();
        quote! {
            const #constant: #schema::Declaration = #schema::Declaration {
                form: #form,
                bits: #bits,
                priority: #priority,
                levels: #levels,
                max_len: #max_len,
                bytes: #bytes,
                only_on_spawn: #only_on_spawn,
                optional: #optional,
                saturate: #saturate,
            };
        }
    }

    /// Checks that the type supports the declaration.
    pub(crate) fn checks(&self, schema: &TokenStream) -> TokenStream {
        let Self {
            kind, attributes, ..
        } = self;
        let real = [
            attributes.step.as_ref().map(|at| at.span),
            attributes.exact.as_ref().map(|at| at.span),
            attributes.float.as_ref().map(|at| at.span),
        ];
        let numeric = [attributes.bits.as_ref().map(|at| at.span)];
        let gradual = [
            attributes.levels.as_ref().map(|at| at.span),
            attributes.velocity_of.as_ref().map(|at| at.span),
        ];
        let buffer = [attributes.bytes.as_ref().map(|at| at.span)];
        let keys = [attributes.keys.as_ref().map(|at| at.span)];
        let part = [attributes.table.as_ref().map(|at| at.span)];
        let needs = |spans: &[Option<Span>], bound: &str| {
            let bound = Ident::new(bound, Span::call_site());
            let checks = spans.iter().flatten().map(|&span| {
                let check = Ident::new("check", span);
                let kind = respan(kind, span);
                quote_spanned! {span=>
                    const _: () = {
                        const fn #check<T: #schema::#bound>() {}
                        #check::<#kind>();
                    };
                }
            });
            quote!(#(#checks)*)
        };
        let checks = [
            needs(&real, "Real"),
            needs(&numeric, "Numeric"),
            needs(&gradual, "Gradual"),
            needs(&buffer, "Buffer"),
            needs(&keys, "Bits"),
            needs(&part, "Part"),
        ];
        quote!(#(#checks)*)
    }

    /// The type of its columns: of a field with a table of its own, the type inside the `Option`.
    pub(crate) fn stored(&self, schema: &TokenStream) -> TokenStream {
        let kind = self.kind;
        match self.attributes.table {
            Some(_) => quote!(<#kind as #schema::Part>::Value),
            None => quote!(#kind),
        }
    }

    pub(crate) fn has_own_table(&self) -> bool {
        self.attributes.table.is_some()
    }

    /// The condition under which a table has this field; `None` if all tables of the type have it,
    /// but those of single fields.
    pub(crate) fn shown(&self, tables: &Tables) -> Option<(TokenStream, Span)> {
        let Some(At { value, span }) = &self.attributes.tables else {
            let further = Some(&tables.further).filter(|further| !further.is_empty())?;
            let shown = quote!(!::core::matches!(table, #(#further)|*));
            return Some((shown, self.kind.span()));
        };
        let names = value.iter().map(Ident::to_string);
        Some((quote!(::core::matches!(table, #(#names)|*)), *span))
    }

    /// Code for the tables that have this field.
    pub(crate) fn where_shown(&self, code: &TokenStream, tables: &Tables) -> TokenStream {
        if self.has_own_table() {
            let name = &self.name;
            return quote!(if table == #name { #code });
        }
        let own = &tables.own;
        let in_own = match self.attributes.tables.is_some() || own.is_empty() {
            true => None,
            false => Some(quote!(::core::matches!(table, #(#own)|*))),
        };
        match (self.shown(tables), in_own) {
            (None, None) => code.clone(),
            (None, Some(in_own)) => quote!(if !#in_own { #code }),
            (Some((shown, _)), None) => quote!(if #shown { #code }),
            (Some((shown, _)), Some(in_own)) => quote!(if #shown && !#in_own { #code }),
        }
    }
}

/// The type with the attribute's span, so that errors point at the attribute.
fn respan(kind: &Type, span: Span) -> TokenStream {
    fn each(tokens: TokenStream, span: Span) -> TokenStream {
        let respan = |mut token: proc_macro2::TokenTree| {
            if let proc_macro2::TokenTree::Group(group) = &token {
                let inner = each(group.stream(), span);
                token = proc_macro2::Group::new(group.delimiter(), inner).into();
            }
            token.set_span(token.span().located_at(span));
            token
        };
        tokens.into_iter().map(respan).collect()
    }
    each(quote!(#kind), span)
}

pub(crate) fn step(schema: &TokenStream, at: &At<String>) -> TokenStream {
    let text = &at.value;
    quote_spanned! {at.span=>
        match #schema::Step::parse(#text) {
            ::core::result::Result::Ok(step) => step,
            ::core::result::Result::Err(_) => {
                ::core::panic!("the number does not fit a ratio of two 64-bit integers")
            }
        }
    }
}

fn float(schema: &TokenStream, at: &At<Vec<(u8, u8, i16)>>) -> TokenStream {
    let formats = at.value.iter().map(|(mantissa, exponent, bias)| {
        quote_spanned! {at.span=>
            match #schema::FloatFormat::new(#mantissa, #exponent, #bias) {
                ::core::option::Option::Some(format) => format,
                ::core::option::Option::None => {
                    ::core::panic!("the range of the format is beyond that of `f64`")
                }
            }
        }
    });
    if at.value.len() == 1 {
        return quote!(#schema::Form::Custom(#schema::CustomFloat::uniform(#(#formats)*)));
    }
    quote_spanned! {at.span=>
        #schema::Form::Custom(match #schema::CustomFloat::new([#(#formats),*]) {
            ::core::option::Option::Some(float) => float,
            ::core::option::Option::None => {
                ::core::panic!("a level has numbers that level 0 has not")
            }
        })
    }
}

pub(crate) fn priority(schema: &TokenStream, value: u8) -> TokenStream {
    quote! {
        match #schema::Priority::new(#value) {
            ::core::option::Option::Some(priority) => priority,
            ::core::option::Option::None => ::core::unreachable!(),
        }
    }
}
