insert into WF_HOST_LOCKS (NAME, OWNER, UNTIL_UTC) values (?1, ?2, ?3)
on conflict (NAME) do update set OWNER = ?2, UNTIL_UTC = ?3 where OWNER = ?2 or UNTIL_UTC <= ?4
  or UNTIL_UTC > ?3 + (?3 - ?4) -- nobody takes it for so long: the clock was set back
