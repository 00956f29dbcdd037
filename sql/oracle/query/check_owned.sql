select count(*) OWNED from ALL_OBJECTS O where O.OWNER = :OWNER
