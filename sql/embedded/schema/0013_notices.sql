-- Of each dead letter, that no node has told of it. The commit that makes a letter makes its notice, whoever writes it.
create table WF_NOTICES (
  NOTICE_NO      integer primary key autoincrement,
  DEAD_LETTER_ID text not null,
  QUEUE          text,
  INSTANCE_ID    text,
  REASON         text,
  DETAIL         text,
  ATTEMPTS       integer not null,
  NODE           text,
  DIED_ON_UTC    integer
);
create trigger WF_DEAD_LETTERS_NOTICE after insert on WF_DEAD_LETTERS begin
  insert into WF_NOTICES (DEAD_LETTER_ID, QUEUE, INSTANCE_ID, REASON, DETAIL, ATTEMPTS, NODE, DIED_ON_UTC)
  values (new.DEAD_LETTER_ID, new.QUEUE, new.INSTANCE_ID, new.REASON, new.DETAIL, new.ATTEMPTS, new.NODE, new.DIED_ON_UTC);
end;
