//! Structs: the concatenated columns of their fields.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DataStruct, DeriveInput, Member, Result};

use crate::attributes::StructAttributes;
use crate::check::check;
use crate::column::{Column, Tables, columns, step};

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataStruct,
    schema: &TokenStream,
) -> Result<TokenStream> {
    let attributes = StructAttributes::parse(&input.attrs)?;
    let (columns, skipped) = columns(&data.fields)?;
    check(&attributes, &columns)?;
    let state = Structure {
        ident: &input.ident,
        attributes,
        columns,
        skipped,
        schema,
    };
    let (value, class) = (state.value(), state.state());
    Ok(quote!(#value #class))
}

/// The parsed struct.
pub(crate) struct Structure<'a> {
    pub ident: &'a Ident,
    pub attributes: StructAttributes,
    pub columns: Vec<Column<'a>>,
    pub skipped: Vec<Member>,
    pub schema: &'a TokenStream,
}

impl Structure<'_> {
    fn value(&self) -> TokenStream {
        let (ident, schema) = (self.ident, self.schema);
        let tables = &self.tables();
        let own = &tables.own;
        let checks = self.columns.iter().map(|column| column.checks(schema));
        let constants = self.columns.iter().map(|column| column.declaration(schema));
        let describe = self.columns.iter().map(|column| {
            let Column { name, constant, .. } = column;
            let stored = column.stored(schema);
            let describe = column.where_shown(
                &quote! {
                    <#stored as #schema::Value>::describe(
                        &#schema::join(name, #name), &#constant.within(how), table, class,
                    );
                },
                tables,
            );
            let check = column
                .has_own_table()
                .then(|| quote!(class.check_own_table(#schema::join(name, #name));));
            quote!(#check #describe)
        });
        let rates = self.columns.iter().map(|column| self.rate(column));
        let width = self.columns.iter().map(|column| {
            let (stored, constant) = (column.stored(schema), &column.constant);
            let code = quote! {
                width += <#stored as #schema::Value>::width(&#constant, table);
            };
            column.where_shown(&code, tables)
        });
        let write = self.columns.iter().map(|column| {
            let Column {
                kind,
                member,
                constant,
                ..
            } = column;
            let code = match column.has_own_table() {
                false => quote! {
                    <#kind as #schema::Value>::write(&self.#member, &#constant, table, row);
                },
                true => {
                    let stored = column.stored(schema);
                    quote! {
                        match <#kind as #schema::Part>::value(&self.#member) {
                            ::core::option::Option::Some(part) => {
                                <#stored as #schema::Value>::write(part, &#constant, table, row);
                            }
                            ::core::option::Option::None => {
                                let width = <#stored as #schema::Value>::width(&#constant, table);
                                (0..width).for_each(|_| #schema::Sink::put(row, 0));
                            }
                        }
                    }
                }
            };
            column.where_shown(&code, tables)
        });
        let read = self.columns.iter().map(|column| {
            let Column {
                kind,
                member,
                constant,
                ..
            } = column;
            if column.has_own_table() {
                return quote!(#member: <#kind as #schema::Part>::absent(),);
            }
            let take = quote!(<#kind as #schema::Value>::read(&#constant, table, row)?);
            match column.shown(tables) {
                None => quote!(#member: #take,),
                Some((shown, span)) => {
                    let absent =
                        quote_spanned!(span=> <#kind as ::core::default::Default>::default());
                    quote!(#member: if #shown { #take } else { #absent },)
                }
            }
        });
        let skipped = &self.skipped;
        let only_a_part = (!own.is_empty()).then(|| {
            quote! {
                if ::core::matches!(table, #(#own)|*) {
                    return ::core::result::Result::Err(row.only_a_part());
                }
            }
        });
        quote! {
            const _: () = {
                #(#checks)*
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
                        #only_a_part
                        ::core::result::Result::Ok(Self {
                            #(#read)*
                            #(#skipped: ::core::default::Default::default(),)*
                        })
                    }
                }
            };
        }
    }

    fn tables(&self) -> Tables {
        let declared = self.attributes.tables.as_ref();
        let further = declared.map_or(&[][..], |at| at.value.get(1..).unwrap_or_default());
        Tables {
            further: further.iter().map(ToString::to_string).collect(),
            own: self.own_tables(),
        }
    }

    /// The names of the fields that have a table of their own, which is also named like that.
    pub(crate) fn own_tables(&self) -> Vec<String> {
        let own = self.columns.iter().filter(|column| column.has_own_table());
        own.map(|column| column.name.clone()).collect()
    }

    /// Declares a velocity as the rate of its position, in tables that have both.
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
}
