module {
  tt.func public @gelu_forward(%x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %rows = arith.constant $rows : i32
    %hidden = arith.constant $hidden : i32
    %cst = arith.constant dense<-3.000000e+01> : tensor<16x512xf32>
    %cst_0 = arith.constant dense<3.000000e+01> : tensor<16x512xf32>
    %cst_1 = arith.constant dense<1.59576917> : tensor<16x512xf32>
    %cst_2 = arith.constant dense<4.471500e-02> : tensor<16x512xf32>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<16x512xf32>
    %cst_4 = arith.constant dense<-1.44269502> : tensor<16x512xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<1x512x$float>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<16x512x$float>
    %c512_i32 = arith.constant 512 : i32
    %c16_i32 = arith.constant 16 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c16_i32 : i32
    %2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %3 = tt.expand_dims %2 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %4 = tt.splat %1 : i32 -> tensor<16x1xi32>
    %5 = arith.addi %4, %3 : tensor<16x1xi32>
    %6 = tt.get_program_id y : i32
    %7 = arith.muli %6, %c512_i32 : i32
    %8 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %9 = tt.expand_dims %8 {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %10 = tt.splat %7 : i32 -> tensor<1x512xi32>
    %11 = arith.addi %10, %9 : tensor<1x512xi32>
    %12 = tt.splat %rows : i32 -> tensor<16x1xi32>
    %13 = arith.cmpi slt, %5, %12 : tensor<16x1xi32>
    %14 = tt.splat %hidden : i32 -> tensor<1x512xi32>
    %15 = arith.cmpi slt, %11, %14 : tensor<1x512xi32>
    %16 = tt.broadcast %13 : tensor<16x1xi1> -> tensor<16x512xi1>
    %17 = tt.broadcast %15 : tensor<1x512xi1> -> tensor<16x512xi1>
    %18 = arith.andi %16, %17 : tensor<16x512xi1>
    %19 = arith.extsi %5 : tensor<16x1xi32> to tensor<16x1xi64>
    %20 = arith.extsi %hidden : i32 to i64
    %21 = tt.splat %20 : i64 -> tensor<16x1xi64>
    %22 = arith.muli %19, %21 : tensor<16x1xi64>
    %23 = arith.extsi %11 : tensor<1x512xi32> to tensor<1x512xi64>
    %24 = tt.broadcast %22 : tensor<16x1xi64> -> tensor<16x512xi64>
    %25 = tt.broadcast %23 : tensor<1x512xi64> -> tensor<16x512xi64>
    %26 = arith.addi %24, %25 : tensor<16x512xi64>
    %27 = tt.splat %x : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
    %28 = tt.addptr %27, %26 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
    %29 = tt.load %28, %18, %cst_6 : tensor<16x512x!tt.ptr<$float>>
    %30 = arith.extf %29 : tensor<16x512x$float> to tensor<16x512xf32>
    %31 = tt.splat %bias : !tt.ptr<$float> -> tensor<1x512x!tt.ptr<$float>>
    %32 = tt.addptr %31, %11 : tensor<1x512x!tt.ptr<$float>>, tensor<1x512xi32>
    %33 = tt.load %32, %15, %cst_5 : tensor<1x512x!tt.ptr<$float>>
    %34 = arith.extf %33 : tensor<1x512x$float> to tensor<1x512xf32>
    %35 = tt.broadcast %34 : tensor<1x512xf32> -> tensor<16x512xf32>
    %36 = arith.addf %30, %35 : tensor<16x512xf32>
    %37 = arith.maxnumf %36, %cst : tensor<16x512xf32>
    %38 = arith.minnumf %37, %cst_0 : tensor<16x512xf32>
    %39 = arith.mulf %38, %38 : tensor<16x512xf32>
    %40 = arith.mulf %38, %cst_1 : tensor<16x512xf32>
    %41 = arith.mulf %39, %cst_2 : tensor<16x512xf32>
    %42 = arith.addf %41, %cst_3 : tensor<16x512xf32>
    %43 = arith.mulf %40, %42 : tensor<16x512xf32>
    %44 = arith.mulf %43, %cst_4 : tensor<16x512xf32>
    %45 = math.exp2 %44 : tensor<16x512xf32>
    %46 = arith.addf %45, %cst_3 : tensor<16x512xf32>
    %47 = arith.divf %cst_3, %46 : tensor<16x512xf32>
    %48 = tt.splat %out : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
    %49 = tt.addptr %48, %26 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
    %50 = arith.mulf %36, %47 : tensor<16x512xf32>
    %51 = arith.truncf %50 : tensor<16x512xf32> to tensor<16x512x$float>
    tt.store %49, %51, %18 : tensor<16x512x!tt.ptr<$float>>
    tt.return
  }
}
