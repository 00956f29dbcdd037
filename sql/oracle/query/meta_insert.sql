insert into WF_META (NAME, VALUE) values (:NAME, :VALUE)
