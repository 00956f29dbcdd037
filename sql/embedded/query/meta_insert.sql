insert into WF_META (NAME, VALUE) values (?, ?) on conflict (NAME) do nothing
