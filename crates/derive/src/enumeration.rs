//! Enumerations without data: one column with the variant's index.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Fields, Result};

use crate::attributes::refuse_all;

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataEnum,
    schema: &TokenStream,
) -> Result<TokenStream> {
    refuse_all(&input.attrs, "an enumeration has no attributes of its own")?;
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "a state needs at least one value",
        ));
    }
    let mut names = Vec::new();
    for variant in &data.variants {
        refuse_all(&variant.attrs, "a variant has no attributes of its own")?;
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                &variant.fields,
                "only enumerations without data can be a state; put the data into fields beside it",
            ));
        }
        names.push(&variant.ident);
    }
    let texts = names.iter().map(ToString::to_string);
    let positions: Vec<i64> = (0..).take(names.len()).collect();
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #schema::Value for #ident {
            fn describe(
                name: &str,
                how: &#schema::Declaration,
                _: &str,
                class: &mut #schema::ClassBuilder,
            ) {
                let kind = #schema::FieldKind::variants(&[#(#texts),*]);
                class.field(how.column(name, kind));
            }

            fn width(_: &#schema::Declaration, _: &str) -> usize {
                1
            }

            fn write(&self, _: &#schema::Declaration, _: &str, row: &mut impl #schema::Sink) {
                row.put(match self {
                    #(Self::#names => #positions,)*
                });
            }

            fn read(
                _: &#schema::Declaration,
                _: &str,
                row: &mut #schema::Source<'_>,
            ) -> ::core::result::Result<Self, #schema::ReadError> {
                row.take(|value| match value {
                    #(#positions => ::core::option::Option::Some(Self::#names),)*
                    _ => ::core::option::Option::None,
                })
            }
        }
    })
}
