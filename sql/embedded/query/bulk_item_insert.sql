insert into WF_BULK_ITEMS (PLAN_ID, ITEM_NO, TARGET_ID, TARGET_VERSION, TARGET_KIND) values (?, ?, ?, ?, ?)
