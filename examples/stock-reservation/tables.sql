-- The application's own tables, beside those of the engine (steps.tables).
create table if not exists SHOP_STOCK (ITEM text primary key, LEFT_OVER integer not null check (LEFT_OVER >= 0));
create table if not exists SHOP_RESERVATIONS (ORDER_ID text primary key, ITEM text not null, QTY integer not null);
insert or ignore into SHOP_STOCK (ITEM, LEFT_OVER) values ('pen', 10), ('ink', 2);
