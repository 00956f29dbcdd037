insert into WF_META (NAME, VALUE) values ('probe', ?)
on conflict (NAME) do update set VALUE = excluded.VALUE
