delete from WF_BULK_ITEMS where PLAN_ID = :PLAN_ID and ITEM_NO < :ITEMS_BELOW
