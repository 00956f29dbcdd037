delete from WF_BULK_ITEMS
where (PLAN_ID, ITEM_NO) in (select I.PLAN_ID, I.ITEM_NO from WF_BULK_ITEMS I where I.PLAN_ID = ? limit ?)
