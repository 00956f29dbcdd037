insert into WF_DEFINITIONS (NAME, VERSION, DIGEST, KIND, TITLE, PUBLISHED_ON_UTC, SOURCE, DOCUMENT, ORDINAL)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing
