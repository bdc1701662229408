//! Generates the class of a struct: its tables, roles and contract.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::attributes::At;
use crate::column::{Column, priority};
use crate::structure::Structure;

impl Structure<'_> {
    pub(crate) fn state(&self) -> TokenStream {
        let (ident, schema, attributes) = (self.ident, self.schema, &self.attributes);
        let mut tables: Vec<String> = match &attributes.tables {
            Some(tables) => tables.value.iter().map(Ident::to_string).collect(),
            None => vec![DEFAULT_TABLE.to_owned()],
        };
        let (declared, own) = (tables.len(), self.own_tables());
        tables.extend(own.iter().cloned());
        let class = match &attributes.rename {
            Some(rename) => rename.value.clone(),
            None => ident.to_string(),
        };
        let classes = tables.iter().enumerate().map(|(index, table)| match index {
            0 => class.clone(),
            _ => format!("{class}.{table}"),
        });
        let contracts = tables.iter().enumerate().map(|(index, table)| {
            match index < declared {
                true => self.contract(table),
                // A contract predicts the whole type, of which this table has a part.
                false => Some(quote!(class.optional();)),
            }
        });
        let optional = self.optional_tables(&own);
        let priority = attributes.priority.as_ref().map(|at| {
            let priority = priority(schema, at.value);
            quote!(class.priority(const { #priority });)
        });
        let roles = self.roles();
        let predicted = attributes.predicted.is_some();
        quote! {
            #[automatically_derived]
            #[allow(unused_mut, clippy::all)]
            impl #schema::State for #ident {
                const TABLES: &'static [&'static str] = &[#(#tables),*];
                const NAME: &'static str = #class;
                const PREDICTED: bool = #predicted;
                #optional

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
                    class.own_tables(<Self as #schema::State>::OPTIONAL_TABLES);
                    <Self as #schema::Value>::describe(
                        "", &#schema::Declaration::PLAIN, table, &mut class,
                    );
                    #priority
                    #(#roles)*
                    class.build()
                }
            }
        }
    }

    /// What `State` has about optional tables, if the type has any.
    fn optional_tables(&self, own: &[String]) -> Option<TokenStream> {
        let schema = self.schema;
        if own.is_empty() {
            return None;
        }
        let columns = || self.columns.iter().filter(|column| column.has_own_table());
        let has = columns().map(
            |Column {
                 member, kind, name, ..
             }| {
                quote!(#name => <#kind as #schema::Part>::value(&self.#member).is_some(),)
            },
        );
        let read = columns().map(|column| {
            let Column {
                member,
                kind,
                name,
                constant,
                ..
            } = column;
            let (declaration, stored) = (column.declaration(schema), column.stored(schema));
            quote! {
                #name => {
                    #declaration
                    let part = <#stored as #schema::Value>::read(&#constant, table, row)?;
                    self.#member = <#kind as #schema::Part>::present(part);
                }
            }
        });
        Some(quote! {
            const OPTIONAL_TABLES: &'static [&'static str] = &[#(#own),*];

            fn has_table(&self, table: &str) -> bool {
                match table {
                    #(#has)*
                    _ => true,
                }
            }

            fn read_table(
                &mut self,
                table: &str,
                row: &mut #schema::Source<'_>,
            ) -> ::core::result::Result<(), #schema::ReadError> {
                match table {
                    #(#read)*
                    _ => return ::core::result::Result::Err(row.only_a_part()),
                }
                ::core::result::Result::Ok(())
            }
        })
    }

    fn contract(&self, table: &str) -> Option<TokenStream> {
        let (ident, schema) = (self.ident, self.schema);
        let At { value: path, .. } = self.attributes.predict_with.as_ref()?;
        let name = quote!(#path).to_string().replace(' ', "");
        // This name is the only one that may shadow one of the user's.
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
        let (schema, mut roles) = (self.schema, Vec::new());
        let mut role = |method: &str, name: &str| {
            let method = Ident::new(method, Span::call_site());
            let declare = match method == "position" {
                true => quote!(class.position([#name])),
                false => quote!(class.#method(#name)),
            };
            // A field of another table is left out here; one of no table makes `build` fail.
            roles.push(quote! {
                if class.has(#name) || !#schema::has_field::<Self>(#name) {
                    #declare;
                }
            });
        };
        for column in &self.columns {
            let marks = &column.attributes;
            for (mark, method) in [
                (&marks.owner, "owner"),
                (&marks.group, "group"),
                (&marks.keys, "keys"),
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

/// The only table of a type that declares none, besides those of single fields.
pub(crate) const DEFAULT_TABLE: &str = "default";
