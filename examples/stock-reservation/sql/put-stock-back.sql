update SHOP_STOCK set LEFT_OVER = LEFT_OVER + :qty where ITEM = :item
