insert into WF_ATTRIBUTES (INSTANCE_NO, NAME, KIND, VALUE, VALUE_KEY) values (?, ?, ?, ?, ?)
on conflict (INSTANCE_NO, NAME) do update set KIND = excluded.KIND, VALUE = excluded.VALUE, VALUE_KEY = excluded.VALUE_KEY
