//! Events: structs, and enumerations whose variants may have fields.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Member, Result};

use crate::attributes::EventAttributes;
use crate::class::DEFAULT_TABLE;
use crate::column::{Column, columns};

pub(crate) fn expand(input: &DeriveInput, schema: &TokenStream) -> Result<TokenStream> {
    let of_type = EventAttributes::parse(&input.attrs)?;
    let ident = &input.ident;
    let name = of_type
        .rename
        .as_ref()
        .map_or_else(|| ident.to_string(), |rename| rename.value.clone());
    let mut variants = Vec::new();
    match &input.data {
        Data::Struct(data) => {
            let class = format!("event {name}");
            variants.push(Variant::new(0, None, class, &of_type, &data.fields)?);
        }
        Data::Enum(data) => {
            for (number, variant) in data.variants.iter().enumerate() {
                let own = EventAttributes::parse(&variant.attrs)?;
                if let Some(answer) = &own.answer {
                    let text = "a variant is not answered; make the request a struct";
                    return Err(Error::new(answer.span, text));
                }
                let own_name = own.rename.as_ref().map(|rename| rename.value.clone());
                let own_name = own_name.unwrap_or_else(|| variant.ident.to_string());
                let class = format!("event {name}::{own_name}");
                let attributes = own.or(&of_type);
                let path = Some(&variant.ident);
                variants.push(Variant::new(
                    number,
                    path,
                    class,
                    &attributes,
                    &variant.fields,
                )?);
            }
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(
                data.union_token,
                "a union cannot be an event",
            ));
        }
    }
    if variants.is_empty() {
        return Err(Error::new_spanned(
            ident,
            "an event needs at least one variant",
        ));
    }
    let numbers: Vec<usize> = (0..variants.len()).collect();
    let names = variants.iter().map(|variant| &variant.class);
    let columns = || variants.iter().flat_map(|variant| &variant.columns);
    let checks = columns().map(|column| column.checks(schema));
    let constants = columns().map(|column| column.declaration(schema));
    let classes = variants.iter().map(|variant| variant.describe(schema));
    let writes = variants.iter().map(|variant| variant.write(schema));
    let reads = variants.iter().map(|variant| variant.read(schema));
    let request = of_type.answer.as_ref().map(|answer| {
        let answer = &answer.value;
        quote! {
            #[automatically_derived]
            impl #schema::Request for #ident {
                type Answer = #answer;
            }
        }
    });
    Ok(quote! {
        const _: () = {
            #(#checks)*
            #(#constants)*

            #[automatically_derived]
            #[allow(unused_variables, unused_mut, clippy::all)]
            impl #schema::Event for #ident {
                const CLASSES: &'static [&'static str] = &[#(#names),*];

                fn class(
                    variant: usize,
                ) -> ::core::result::Result<#schema::Class, #schema::SchemaError> {
                    let mut class = #schema::ClassBuilder::new(Self::CLASSES[variant]);
                    match variant {
                        #(#numbers => { #classes })*
                        _ => {}
                    }
                    class.build()
                }

                fn write(&self, row: &mut impl #schema::Sink) -> usize {
                    match self {
                        #(#writes)*
                    }
                }

                fn read(
                    variant: usize,
                    row: &mut #schema::Source<'_>,
                ) -> ::core::result::Result<Self, #schema::ReadError> {
                    match variant {
                        #(#numbers => { #reads })*
                        _ => ::core::result::Result::Err(row.only_a_part()),
                    }
                }
            }
            #request
        };
    })
}

/// A struct, or a variant of an enumeration.
struct Variant<'a> {
    number: usize,
    /// `None` for a struct.
    ident: Option<&'a Ident>,
    class: String,
    delivery: Ident,
    columns: Vec<Column<'a>>,
    skipped: Vec<Member>,
}

impl<'a> Variant<'a> {
    fn new(
        number: usize,
        ident: Option<&'a Ident>,
        class: String,
        attributes: &EventAttributes,
        fields: &'a Fields,
    ) -> Result<Self> {
        let (mut columns, skipped) = columns(fields)?;
        for (index, column) in columns.iter_mut().enumerate() {
            if let Some(span) = column.attributes.of_entities() {
                let text = "this concerns the state of entities; an event is sent once";
                return Err(Error::new(span, text));
            }
            column.constant = format_ident!("FIELD_{number}_{index}");
        }
        Ok(Self {
            number,
            ident,
            class,
            delivery: attributes.delivery(),
            columns,
            skipped,
        })
    }

    /// The path by which it is matched and made.
    fn path(&self) -> TokenStream {
        match self.ident {
            Some(ident) => quote!(Self::#ident),
            None => quote!(Self),
        }
    }

    fn describe(&self, schema: &TokenStream) -> TokenStream {
        let delivery = &self.delivery;
        let fields = self.columns.iter().map(|column| {
            let Column {
                kind,
                name,
                constant,
                ..
            } = column;
            quote! {
                <#kind as #schema::Value>::describe(#name, &#constant, #DEFAULT_TABLE, &mut class);
            }
        });
        quote! {
            class.event(#schema::EventDelivery::#delivery);
            #(#fields)*
        }
    }

    fn write(&self, schema: &TokenStream) -> TokenStream {
        let (path, number) = (self.path(), self.number);
        let bound = |at: usize| format_ident!("field_{at}");
        let members = self.columns.iter().enumerate().map(|(at, column)| {
            let (member, bound) = (&column.member, bound(at));
            quote!(#member: #bound)
        });
        let writes = self.columns.iter().enumerate().map(|(at, column)| {
            let Column { kind, constant, .. } = column;
            let bound = bound(at);
            quote! {
                <#kind as #schema::Value>::write(#bound, &#constant, #DEFAULT_TABLE, row);
            }
        });
        quote! {
            #path { #(#members,)* .. } => {
                #(#writes)*
                #number
            }
        }
    }

    fn read(&self, schema: &TokenStream) -> TokenStream {
        let path = self.path();
        let reads = self.columns.iter().map(|column| {
            let Column {
                kind,
                member,
                constant,
                ..
            } = column;
            quote! {
                #member: <#kind as #schema::Value>::read(&#constant, #DEFAULT_TABLE, row)?,
            }
        });
        let skipped = &self.skipped;
        quote! {
            ::core::result::Result::Ok(#path {
                #(#reads)*
                #(#skipped: ::core::default::Default::default(),)*
            })
        }
    }
}
