//! Structs: the columns of their fields, one after the other.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DataStruct, DeriveInput, Error, Member, Result, Type};

use crate::attributes::{At, FieldAttributes, StructAttributes};

/// One field that is not skipped.
struct Column<'a> {
    member: Member,
    name: String,
    kind: &'a Type,
    attributes: FieldAttributes,
    /// The constant that holds its declaration.
    constant: Ident,
}

pub fn expand(input: &DeriveInput, data: &DataStruct, schema: &TokenStream) -> Result<TokenStream> {
    let attributes = StructAttributes::parse(&input.attrs)?;
    let (columns, skipped) = columns(data)?;
    check(&attributes, &columns)?;
    let state = Structure {
        ident: &input.ident,
        attributes,
        columns,
        skipped,
        schema,
    };
    let (value, class) = (state.value()?, state.state()?);
    Ok(quote!(#value #class))
}

fn columns(data: &DataStruct) -> Result<(Vec<Column<'_>>, Vec<Member>)> {
    let (mut columns, mut skipped) = (Vec::new(), Vec::new());
    for (index, (member, field)) in data.fields.members().zip(&data.fields).enumerate() {
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

/// Names that must be those of other fields or tables.
fn check(of_struct: &StructAttributes, columns: &[Column<'_>]) -> Result<()> {
    let known = |name: &At<String>| {
        let first = name.value.split(['.', '[']).next().unwrap_or_default();
        if columns.iter().any(|column| column.name == first) {
            return Ok(());
        }
        Err(Error::new(
            name.span,
            format!("there is no field `{first}`"),
        ))
    };
    for role in [&of_struct.owner, &of_struct.group, &of_struct.position] {
        role.as_ref().map_or(Ok(()), known)?;
    }
    let no_tables = Vec::new();
    let tables = of_struct
        .tables
        .as_ref()
        .map_or(&no_tables, |tables| &tables.value);
    for column in columns {
        let attributes = &column.attributes;
        for table in attributes.tables.iter().flat_map(|tables| &tables.value) {
            if !tables.contains(table) {
                let text = format!("the struct declares no table `{table}`");
                return Err(Error::new(table.span(), text));
            }
        }
        if let Some(velocity) = &attributes.velocity_of {
            known(velocity)?;
            if velocity.value == column.name {
                let text = "a field cannot be its own rate of change";
                return Err(Error::new(velocity.span, text));
            }
            if attributes.per_tick.is_none() && of_struct.tick_hz.is_none() {
                let text = "say `per_tick`, or declare `tick_hz = …` on the struct";
                return Err(Error::new(velocity.span, text));
            }
        }
    }
    for (twice, what) in [
        (
            second(columns, |field| &field.owner, &of_struct.owner),
            "owner",
        ),
        (
            second(columns, |field| &field.group, &of_struct.group),
            "group",
        ),
    ] {
        if let Some(span) = twice {
            return Err(Error::new(span, format!("there is another `{what}` field")));
        }
    }
    Ok(())
}

fn second(
    columns: &[Column<'_>],
    mark: fn(&FieldAttributes) -> &Option<At<()>>,
    of_struct: &Option<At<String>>,
) -> Option<Span> {
    let marks = columns
        .iter()
        .filter_map(|column| mark(&column.attributes).as_ref());
    marks
        .map(|at| at.span)
        .nth(usize::from(of_struct.is_none()))
}

struct Structure<'a> {
    ident: &'a Ident,
    attributes: StructAttributes,
    columns: Vec<Column<'a>>,
    skipped: Vec<Member>,
    schema: &'a TokenStream,
}

impl Structure<'_> {
    fn value(&self) -> Result<TokenStream> {
        let (ident, schema) = (self.ident, self.schema);
        let constants = self.columns.iter().map(|column| column.declaration(schema));
        let describe = self.columns.iter().map(|column| {
            let Column {
                name,
                kind,
                constant,
                ..
            } = column;
            column.where_shown(&quote! {
                <#kind as #schema::Value>::describe(
                    &#schema::join(name, #name), &#constant.within(how), table, class,
                );
            })
        });
        let rates = self.columns.iter().map(|column| self.rate(column));
        let width = self.columns.iter().map(|column| {
            let Column { kind, constant, .. } = column;
            column.where_shown(&quote! {
                width += <#kind as #schema::Value>::width(&#constant, table);
            })
        });
        let write = self.columns.iter().map(|column| {
            let Column {
                kind,
                member,
                constant,
                ..
            } = column;
            column.where_shown(&quote! {
                <#kind as #schema::Value>::write(&self.#member, &#constant, table, row);
            })
        });
        let read = self.columns.iter().map(|column| {
            let Column {
                kind,
                member,
                constant,
                ..
            } = column;
            let take = quote!(<#kind as #schema::Value>::read(&#constant, table, row)?);
            match column.shown() {
                None => quote!(#member: #take,),
                Some((shown, span)) => {
                    let absent =
                        quote_spanned!(span=> <#kind as ::core::default::Default>::default());
                    quote!(#member: if #shown { #take } else { #absent },)
                }
            }
        });
        let skipped = &self.skipped;
        Ok(quote! {
            const _: () = {
                #(#constants)*

                #[automatically_derived]
                #[allow(unused_variables, unused_mut, clippy::all)]
                impl #schema::Value for #ident {
                    fn describe(
                        name: &str,
                        how: &#schema::Declaration,
                        table: &str,
                        class: &mut #schema::ClassBuilder,
                    ) {
                        #(#describe)*
                        #(#rates)*
                    }

                    fn width(how: &#schema::Declaration, table: &str) -> usize {
                        let mut width = 0;
                        #(#width)*
                        width
                    }

                    fn write(
                        &self,
                        how: &#schema::Declaration,
                        table: &str,
                        row: &mut impl #schema::Sink,
                    ) {
                        #(#write)*
                    }

                    fn read(
                        how: &#schema::Declaration,
                        table: &str,
                        row: &mut #schema::Source<'_>,
                    ) -> ::core::result::Result<Self, #schema::ReadError> {
                        ::core::result::Result::Ok(Self {
                            #(#read)*
                            #(#skipped: ::core::default::Default::default(),)*
                        })
                    }
                }
            };
        })
    }

    /// Relates a velocity to its position, in tables that have both.
    fn rate(&self, column: &Column<'_>) -> Option<TokenStream> {
        let schema = self.schema;
        let of = &column.attributes.velocity_of.as_ref()?.value;
        let name = &column.name;
        let rate = match (&column.attributes.per_tick, &self.attributes.tick_hz) {
            (None, Some(hz)) => {
                let hz = step(schema, hz);
                quote!(#schema::Rate::PerSecond { tick_hz: const { #hz } })
            }
            _ => quote!(#schema::Rate::PerTick),
        };
        Some(quote! {
            let (of, base) = (#schema::join(name, #name), #schema::join(name, #of));
            if class.has(&of) && class.has(&base) {
                class.rate(of, base, #rate);
            }
        })
    }

    fn state(&self) -> Result<TokenStream> {
        let (ident, schema, attributes) = (self.ident, self.schema, &self.attributes);
        let tables: Vec<String> = match &attributes.tables {
            Some(tables) => tables.value.iter().map(Ident::to_string).collect(),
            None => vec!["default".to_owned()],
        };
        let class = match &attributes.rename {
            Some(rename) => rename.value.clone(),
            None => ident.to_string(),
        };
        let classes = tables.iter().enumerate().map(|(index, table)| match index {
            0 => class.clone(),
            _ => format!("{class}.{table}"),
        });
        let contracts = tables.iter().map(|table| self.contract(table));
        let priority = attributes.priority.as_ref().map(|at| {
            let priority = priority(schema, at.value);
            quote!(class.priority(const { #priority });)
        });
        let roles = self.roles();
        Ok(quote! {
            #[automatically_derived]
            #[allow(unused_mut, clippy::all)]
            impl #schema::State for #ident {
                const TABLES: &'static [&'static str] = &[#(#tables),*];

                fn class(
                    table: &str,
                ) -> ::core::result::Result<#schema::Class, #schema::SchemaError> {
                    let mut class = match table {
                        #(#tables => {
                            let mut class = #schema::ClassBuilder::new(#classes);
                            #contracts
                            class
                        })*
                        _ => return ::core::result::Result::Err(
                            #schema::SchemaError::no_such_table(#class, table),
                        ),
                    };
                    <Self as #schema::Value>::describe(
                        "", &#schema::Declaration::PLAIN, table, &mut class,
                    );
                    #priority
                    #(#roles)*
                    class.build()
                }
            }
        })
    }

    fn contract(&self, table: &str) -> Option<TokenStream> {
        let (ident, schema) = (self.ident, self.schema);
        let At { value: path, .. } = self.attributes.predict_with.as_ref()?;
        let name = quote!(#path).to_string().replace(' ', "");
        // Only this one name can hide something of the user's.
        Some(quote! {
            fn __prescient_fast_forward(row: &[i64], ticks: u32, out: &mut [i64]) {
                #schema::fast_forward::<#ident>(#table, row, ticks, out, #path);
            }
            class.contract(#schema::Contract {
                name: ::core::convert::Into::into(#name),
                fast_forward: __prescient_fast_forward,
            });
        })
    }

    fn roles(&self) -> Vec<TokenStream> {
        let mut roles = Vec::new();
        let mut role = |method: &str, name: &str| {
            let method = Ident::new(method, Span::call_site());
            roles.push(match method == "position" {
                true => quote!(if class.has(#name) { class.position([#name]); }),
                false => quote!(if class.has(#name) { class.#method(#name); }),
            });
        };
        for column in &self.columns {
            let marks = &column.attributes;
            for (mark, method) in [
                (&marks.owner, "owner"),
                (&marks.group, "group"),
                (&marks.position, "position"),
            ] {
                if mark.is_some() {
                    role(method, &column.name);
                }
            }
        }
        let of_struct = &self.attributes;
        for (name, method) in [
            (&of_struct.owner, "owner"),
            (&of_struct.group, "group"),
            (&of_struct.position, "position"),
        ] {
            if let Some(name) = name {
                role(method, &name.value);
            }
        }
        roles
    }
}

impl Column<'_> {
    /// The constant that holds what was declared, and a check that the type can have it.
    fn declaration(&self, schema: &TokenStream) -> TokenStream {
        let Self {
            kind,
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
        let only_on_spawn = attributes.only_on_spawn.is_some();
        let optional = attributes.optional.is_some();
        let real = [
            attributes.step.as_ref().map(|at| at.span),
            attributes.exact.as_ref().map(|at| at.span),
            attributes.float.as_ref().map(|at| at.span),
        ];
        let numeric = [
            attributes.bits.as_ref().map(|at| at.span),
            attributes.levels.as_ref().map(|at| at.span),
            attributes.velocity_of.as_ref().map(|at| at.span),
        ];
        let needs = |spans: [Option<Span>; 3], bound: &str| {
            let bound = Ident::new(bound, Span::call_site());
            let checks = spans.into_iter().flatten().map(|span| {
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
        let (real, numeric) = (needs(real, "Real"), needs(numeric, "Numeric"));
        quote! {
            #real
            #numeric
            const #constant: #schema::Declaration = #schema::Declaration {
                form: #form,
                bits: #bits,
                priority: #priority,
                levels: #levels,
                only_on_spawn: #only_on_spawn,
                optional: #optional,
            };
        }
    }

    /// The condition under which a table has this field; `None` if all have it.
    fn shown(&self) -> Option<(TokenStream, Span)> {
        let At { value, span } = self.attributes.tables.as_ref()?;
        let names = value.iter().map(Ident::to_string);
        Some((quote!(::core::matches!(table, #(#names)|*)), *span))
    }

    fn where_shown(&self, code: &TokenStream) -> TokenStream {
        match self.shown() {
            None => code.clone(),
            Some((shown, _)) => quote!(if #shown { #code }),
        }
    }
}

/// The type as if it were written at the attribute, so that its errors point there.
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

fn step(schema: &TokenStream, at: &At<String>) -> TokenStream {
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

fn priority(schema: &TokenStream, value: u8) -> TokenStream {
    quote! {
        match #schema::Priority::new(#value) {
            ::core::option::Option::Some(priority) => priority,
            ::core::option::Option::None => ::core::unreachable!(),
        }
    }
}
