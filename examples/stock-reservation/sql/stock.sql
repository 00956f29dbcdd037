select ITEM, LEFT_OVER from SHOP_STOCK where ITEM = :item
