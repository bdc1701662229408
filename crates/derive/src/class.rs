//! Generates the class of a struct: its tables, roles and contract.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::attributes::At;
use crate::column::priority;
use crate::structure::Structure;

impl Structure<'_> {
    pub(crate) fn state(&self) -> TokenStream {
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
        quote! {
            #[automatically_derived]
            #[allow(unused_mut, clippy::all)]
            impl #schema::State for #ident {
                const TABLES: &'static [&'static str] = &[#(#tables),*];
                const NAME: &'static str = #class;

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
        }
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
