insert into WF_DEFINITIONS (NAME, VERSION, DIGEST, KIND, TITLE, PUBLISHED_ON_UTC, SOURCE, DOCUMENT)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (NAME, VERSION) do nothing
