-- Fails with a constraint when there is not enough.
update SHOP_STOCK set LEFT_OVER = LEFT_OVER - :qty where ITEM = :item
